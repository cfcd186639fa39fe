package volumes_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/test/testkit"
)

// conforms checks what the files of volumes need of memory, on each system.
func conforms(t *testing.T, memory volumes.Memory) {
	path := filepath.Join(t.TempDir(), "mount")
	if _, err := memory.Mounted(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	if err := volumes.Write(memory, path, nil, nil); err == nil {
		t.Error("files are written where nothing is mounted")
	}
	testkit.Must(t, volumes.Make(memory, path))
	if mounted, err := memory.Mounted(path); err != nil || !mounted {
		t.Errorf("mounted: %t, %v", mounted, err)
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		t.Errorf("a new volume has %v, %v", entries, err)
	}
	for _, want := range []string{"first", "second"} {
		testkit.Must(t, volumes.Write(memory, path, map[string][]byte{"token": []byte(want), want: nil}, nil))
		if got, err := volumes.Read(path, "token"); err != nil || string(got) != want {
			t.Errorf("the token is %q, %v, want %q", got, err, want)
		}
	}
	if _, err := volumes.Read(path, "first"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := volumes.Make(memory, path); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a volume is made over another one: %v", err)
	}
	for range 2 { // a kubelet repeats it
		testkit.Expect(t, volumes.Remove(memory, path), "remove")
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after it was removed: %v", err)
		}
	}
}

// folders are in place of memory where nothing mounts it.
type folders map[string]bool

func (f folders) Mounted(path string) (bool, error) {
	_, err := os.Lstat(path)
	return f[path] && err == nil, err
}

func (f folders) Mount(path string) error {
	f[path] = true
	return nil
}

func (f folders) Unmount(path string) error {
	delete(f, path)
	return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o750))
}

func TestMemoryInFolders(t *testing.T) { conforms(t, folders{}) }
