//go:build unix

package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/internal/filelock"
)

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Take(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("taken twice: %v", err)
	}
	if free := free(t, path); free {
		t.Error("a lock that is held is free")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if free := free(t, path); !free {
		t.Error("a lock that was released is held")
	}
	again, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestTakeRefusesLinks(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(folder, "elsewhere"), filepath.Join(folder, "lock")); err != nil {
		t.Fatal(err)
	}
	if file, err := filelock.Take(filepath.Join(folder, "lock")); err == nil {
		t.Errorf("took the lock of %s through a link", file.Name())
	}
}

func free(t *testing.T, path string) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	free, err := filelock.Free(file)
	if err != nil {
		t.Fatal(err)
	}
	return free
}
