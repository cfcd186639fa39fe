package credential_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// mounted is a world whose folder is a file system of its own.
func mounted(t *testing.T) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	w := newWorld(t)
	w.must(os.Mkdir(w.folder, 0o700))
	if err := syscall.Mount("tmpfs", w.folder, "tmpfs", 0, "size=512k,mode=700"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(w.folder, syscall.MNT_DETACH) })
	return w
}

func TestFullDisk(t *testing.T) {
	w := mounted(t)
	filler := filepath.Join(w.folder, "filler")
	fill := func() {
		file, err := os.Create(filler)
		w.must(err)
		for err == nil {
			_, err = file.Write(make([]byte, 4096))
		}
		w.must(file.Close())
	}
	fill()
	w.want(1, "token-1")
	w.shown("nothing could be kept", "no space left on device")
	w.must(os.Remove(filler))
	w.want(2, "token-2")
	w.quiet()
	fill()
	w.want(3, "token-2")
	w.pass(time.Hour)
	w.want(4, "token-3")
	w.shown("no space left on device")
	if w.authority.refreshes != 0 {
		t.Error("a state was used whose successor could not be kept")
	}
	attempts := w.authority.attempts
	if _, err := w.provider(client(4)).Renew(t.Context(), w.authority, interactively()); !errors.Is(err, credential.ErrNotKept) || w.authority.attempts != attempts {
		t.Errorf("a person logs in in vain: %v, %d attempts", err, w.authority.attempts-attempts)
	}
	w.must(os.Remove(filler))
	if list := w.list(); len(list) != 1 || !list[0].Renewable {
		t.Errorf("a state was lost: %+v", list)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	w := mounted(t)
	w.want(1, "token-1")
	w.must(syscall.Mount("", w.folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	w.want(2, "token-1")
	w.quiet()
	w.pass(time.Hour)
	w.want(3, "token-2")
	w.shown("nothing can be kept", "read-only file system")
	if w.authority.refreshes != 0 {
		t.Error("a state was used whose successor could not be kept")
	}
}
