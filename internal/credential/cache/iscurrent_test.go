package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/internal/filelock"
)

// A process may lock the file of a lock just after another one has removed or replaced it. No other process would wait for that
// lock, so the process has to try again.
func TestLockOfAFileThatHasGoneIsNone(t *testing.T) {
	folder, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	path := filepath.Join(folder.Path(), "x.lock")
	create := func() *os.File {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	file := create()
	if err := folder.isCurrent(file, "x.lock"); err != nil {
		t.Errorf("while it is there: %v", err)
	}
	if err := os.Rename(path, path+".removed"); err != nil {
		t.Fatal(err)
	}
	if err := folder.isCurrent(file, "x.lock"); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("when it has gone: %v", err)
	}
	create()
	if err := folder.isCurrent(file, "x.lock"); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("with another in its place: %v", err)
	}
}
