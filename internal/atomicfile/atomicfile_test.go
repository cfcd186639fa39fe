package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/test/testkit"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for content, mode := range map[string]fs.FileMode{"first": 0o600, "second": 0o644} {
		testkit.Must(t, atomicfile.Replace(path, []byte(content), mode))
		have(t, path, content, mode)
	}
	if names := entries(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the folder has %q", names)
	}
}

// Of many that create a file at once, one does; it is never replaced.
func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var created atomic.Value
	var running sync.WaitGroup
	for n := range 20 {
		running.Go(func() {
			content := fmt.Sprint(n)
			switch err := atomicfile.Create(path, []byte(content), 0o600); {
			case err == nil && !created.CompareAndSwap(nil, content):
				t.Error("created twice")
			case err != nil && !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	running.Wait()
	have(t, path, created.Load().(string), 0o600)
	if names := entries(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the folder has %q", names)
	}
}

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, step := range []struct {
		content string
		mode    fs.FileMode
		changed bool
	}{{"one", 0o600, true}, {"one", 0o600, false}, {"one", 0o644, true}, {"two", 0o644, true}} {
		changed, err := atomicfile.Update(path, []byte(step.content), step.mode)
		if err != nil || changed != step.changed {
			t.Errorf("%+v: changed %t, %v", step, changed, err)
		}
		have(t, path, step.content, step.mode)
	}
}

// A write that fails leaves the file as it is, and nothing beside it.
func TestReplaceThatFails(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := os.MkdirAll(filepath.Join(path, "below"), 0o700); err != nil { // no file can take its place
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, []byte("content"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if names := entries(t, folder); len(names) != 1 || names[0] != "file" {
		t.Errorf("the folder has %q", names)
	}
	if err := atomicfile.Replace(filepath.Join(folder, "missing", "file"), nil, 0o600); err == nil {
		t.Error("a file was made in a folder that does not exist")
	}
}

func have(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	present := testkit.Need(os.ReadFile(path))(t)
	info := testkit.Need(os.Stat(path))(t)
	if string(present) != content || info.Mode().Perm() != mode {
		t.Errorf("%q of mode %o, want %q of mode %o", present, info.Mode().Perm(), content, mode)
	}
}

func entries(t *testing.T, folder string) []string {
	t.Helper()
	list := testkit.Need(os.ReadDir(folder))(t)
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}
