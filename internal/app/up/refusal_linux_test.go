package up

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

const nobody = 65534

func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	l := newLaptop(t)
	testkit.Must(t, os.Mkdir(string(l.dir), 0o700))
	if err := syscall.Mount("tmpfs", string(l.dir), "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	defer func() { _ = syscall.Unmount(string(l.dir), syscall.MNT_DETACH) }()
	for _, more := range [][]string{nil, {"--detach"}} {
		l.mustFail([]string{string(l.dir), "MiB of free disk space", "300 MiB", "--dir"}, l.upArguments(more...)...)
	}
	l.nothingRuns()
}

func TestTheDiskFillsUpWhileUpRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	l := newLaptop(t)
	testkit.Must(t, os.Mkdir(string(l.dir), 0o700))
	if err := syscall.Mount("tmpfs", string(l.dir), "tmpfs", 0, "size=310m"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	defer func() { _ = syscall.Unmount(string(l.dir), syscall.MNT_DETACH) }()
	f := l.startUp()
	l.waitReady(f)
	apiserver, _ := l.endpoints().Component("apiserver")
	filler, err := os.Create(l.dir.Path("filler"))
	testkit.Must(t, err)
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = filler.Write(chunk)
	}
	_ = filler.Close()
	testkit.Must(t, syscall.Kill(apiserver.PID, syscall.SIGKILL))
	l.eventually("up reports the full disk", func() error {
		if strings.Contains(f.output.String(), "apiserver ended (signal: killed): no space left on device: make room in "+string(l.dir)) {
			return nil
		}
		return errors.New(f.output.String())
	})
	l.mustCall("down", "--dir", string(l.dir))
	l.mustFail([]string{string(l.dir), "MiB of free disk space", "64 MiB"}, l.upArguments()...)
	l.nothingRuns()
}

// asNobody runs credence as a user without rights, in the laptop's folder.
func asNobody(t *testing.T, l *laptop) (output string, failed bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("acting as another user needs root")
	}
	root := filepath.Dir(string(l.dir))
	for _, folder := range []string{root, filepath.Dir(root)} {
		testkit.Must(t, os.Chmod(folder, 0o755))
	}
	command := l.command(l.upArguments()...)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	text, err := command.CombinedOutput()
	return string(text), err != nil
}

func TestUnwritableDir(t *testing.T) {
	l := newLaptop(t)
	output, failed := asNobody(t, l)
	if !failed || !strings.Contains(output, string(l.dir)+" cannot be written to (permission denied)") {
		t.Errorf("up in a folder of root prints %q", output)
	}
}

func TestDirOfAnotherUser(t *testing.T) {
	l := newLaptop(t)
	testkit.Must(t, os.Mkdir(string(l.dir), 0o755))
	output, failed := asNobody(t, l)
	if !failed || !strings.Contains(output, "belongs to user root and you are user nobody") {
		t.Errorf("up in a directory of root prints %q", output)
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	l := newLaptop(t)
	testkit.Must(t, os.Mkdir(string(l.dir), 0o700))
	if err := syscall.Mount("tmpfs", string(l.dir), "tmpfs", syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("mounting a file system is not allowed here: %v", err)
	}
	defer func() { _ = syscall.Unmount(string(l.dir), syscall.MNT_DETACH) }()
	l.mustFail([]string{string(l.dir), "read-only file system", "--dir"}, l.upArguments()...)
}
