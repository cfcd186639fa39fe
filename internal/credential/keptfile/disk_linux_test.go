package keptfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// A full disk leaves the last token in the file, and the next one is written when there is room.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	w := newWorld(t)
	folder := filepath.Dir(w.path)
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	filler := filepath.Join(folder, "filler")
	fill := func() {
		file, err := os.Create(filler)
		testkit.Must(t, err)
		for err == nil {
			_, err = file.Write(make([]byte, 4096))
		}
		_ = file.Close()
	}
	var first string
	w.each = func() {
		switch {
		case first == "":
			first = w.content()
			fill()
		case w.now.After(begin.Add(50 * time.Minute)):
			_ = os.Remove(filler)
		case w.content() != first:
			t.Errorf("at %s the file has %q", w.now, w.content())
		}
	}
	testkit.Must(t, w.run(time.Hour, 0))
	w.shown("no space left on device")
	if w.content() == first || w.content() != w.last.Token.Reveal() || w.issued != 2 {
		t.Errorf("the file has %q after %d tokens", w.content(), w.issued)
	}
	testkit.Must(t, syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if err := w.run(time.Hour, 0); err == nil {
		t.Error("a folder that cannot be written is taken")
	}
}
