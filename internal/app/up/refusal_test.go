//go:build unix

package up

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// Each start that cannot succeed reports in one line what is wrong and what to do, and leaves nothing running.

func TestBusyPort(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{0, 1, 2, 3, 9} {
		l := newLaptop(t)
		listener := testkit.Need(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", l.port+offset)))(t)
		l.mustFail([]string{fmt.Sprintf("port %d of 127.0.0.1", l.port+offset), fmt.Sprintf("pid %d", os.Getpid()), "--port"}, l.upArguments()...)
		testkit.Must(t, listener.Close())
		l.nothingRuns()
		if l.dir.Exists() {
			t.Error("a start that was refused has bound the directory to its port")
		}
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"credence-devcluster", "credence-server", "credence-discovery"} {
		l := newLaptop(t)
		testkit.Must(t, os.Remove(filepath.Join(l.bin, program)))
		l.mustFail([]string{program, l.bin, "PATH", "make build"}, l.upArguments()...)
		if _, err := os.Stat(string(l.dir)); err == nil {
			t.Errorf("a start without %s has made %s", program, l.dir)
		}
	}
}

func TestOtherPortThanBefore(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.mustCall(l.upArguments("--detach")...)
	l.mustCall("down", "--dir", string(l.dir))
	l.mustFail([]string{fmt.Sprintf("was made with --port %d", l.port), "leave out --port"}, "up", "--dir", string(l.dir), "--port", fmt.Sprint(l.port+20))
	// Without --port it is as it was.
	l.mustCall("up", "--dir", string(l.dir), "--detach")
	if got, want := l.endpoints().APIServer, fmt.Sprintf("https://127.0.0.1:%d", l.port); got != want {
		t.Errorf("kube-apiserver is at %s, want %s", got, want)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

func TestImpossiblePort(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	for _, port := range []string{"80", "65530", "-1"} {
		l.mustFail([]string{"--port " + port, "1024", "65525"}, "up", "--dir", string(l.dir), "--port", port)
	}
}

func TestDirIsAFile(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	testkit.Must(t, os.WriteFile(string(l.dir), nil, 0o600))
	l.mustFail([]string{string(l.dir), "is a file", "--dir"}, l.upArguments()...)
	l.mustFail([]string{string(l.dir), "is a file", "--dir"}, l.upArguments("--detach")...)
}

func TestDirOfSomethingElse(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	testkit.Must(t, os.Mkdir(string(l.dir), 0o755))
	testkit.Must(t, os.WriteFile(l.dir.Path("thesis.txt"), []byte("words"), 0o644))
	l.mustFail([]string{string(l.dir), "thesis.txt", "--dir"}, l.upArguments()...)
	info, err := os.Stat(string(l.dir))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of a foreign directory has become %v (%v)", info.Mode(), err)
	}
}

func TestStatusAndDownOfNothing(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.mustCall("down", "--dir", string(l.dir))
	l.mustFail([]string{"nothing was set up in " + string(l.dir), "credence up"}, "status", "--dir", string(l.dir))
	l.mustFail([]string{"wide", "allowed are text, json, yaml"}, "status", "--dir", string(l.dir), "-o", "wide")
}
