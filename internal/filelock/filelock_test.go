//go:build unix

package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/internal/filelock"
	"github.com/credence-id/credence/test/testkit"
)

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := testkit.Need(filelock.Take(path))(t)
	if _, err := filelock.Take(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("taken twice: %v", err)
	}
	if free := free(t, path); free {
		t.Error("a lock that is held is free")
	}
	testkit.Must(t, held.Close())
	if free := free(t, path); !free {
		t.Error("a lock that was released is held")
	}
	again := testkit.Need(filelock.Take(path))(t)
	_ = again.Close()
}

func TestTakeRefusesLinks(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, os.Symlink(filepath.Join(folder, "elsewhere"), filepath.Join(folder, "lock")))
	if file, err := filelock.Take(filepath.Join(folder, "lock")); err == nil {
		t.Errorf("took the lock of %s through a link", file.Name())
	}
}

func free(t *testing.T, path string) bool {
	t.Helper()
	file := testkit.Need(os.Open(path))(t)
	defer func() { _ = file.Close() }()
	free := testkit.Need(filelock.Free(file))(t)
	return free
}
