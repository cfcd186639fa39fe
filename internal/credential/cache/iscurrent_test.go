package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/internal/filelock"
	"github.com/credence-id/credence/test/testkit"
)

// A process may lock the file of a lock just after another one has removed or replaced it. No other process would wait for that
// lock, so the process has to try again.
func TestLockOfAFileThatHasGoneIsNone(t *testing.T) {
	folder := testkit.Need(Open(filepath.Join(t.TempDir(), "cache")))(t)
	defer func() { _ = folder.Close() }()
	path := filepath.Join(folder.Path(), "x.lock")
	create := func() *os.File {
		file := testkit.Need(os.Create(path))(t)
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	file := create()
	testkit.Expect(t, folder.isCurrent(file, "x.lock"), "while it is there")
	testkit.Must(t, os.Rename(path, path+".removed"))
	if err := folder.isCurrent(file, "x.lock"); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("when it has gone: %v", err)
	}
	create()
	if err := folder.isCurrent(file, "x.lock"); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("with another in its place: %v", err)
	}
}
