package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenHoldsTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s is in use by another credence-devcluster (process %d)", path, os.Getpid())
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second Open: error %v, want one with %q", err, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	defer again.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, error %v; want 0700", info.Mode(), err)
	}
}

func TestOpenNamesADirectoryItCannotUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, "dir")
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "cannot use directory "+path) || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("error %v, want one that names %s and --dir", err, path)
	}
}

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := WriteFile(path, []byte("long old content"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "new" {
		t.Errorf("content %q, error %v; want %q", content, err, "new")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files in the directory, error %v; want 1: no temporary one may stay", len(entries), err)
	}
}
