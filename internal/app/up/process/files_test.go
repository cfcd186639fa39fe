//go:build unix

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

func TestRotateKeepsTheRunBefore(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "x.log")
	testkit.Must(t, Rotate(log), "rotate without a log")
	for _, text := range []string{"one", "two"} {
		testkit.Must(t, os.WriteFile(log, []byte(text), 0o600))
		testkit.Must(t, Rotate(log))
	}
	if kept, err := os.ReadFile(log + ".1"); err != nil || string(kept) != "two" {
		t.Errorf("kept is %q (%v), want the run before", kept, err)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("the log is still there")
	}
}

func TestCutLetsAWriterGoOn(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "x.log")
	testkit.Must(t, Cut(log, 3), "cut without a log")
	writer := testkit.Need(os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))(t)
	defer func() { _ = writer.Close() }()
	for _, text := range []string{"abc", "def", "ghi"} {
		testkit.Must(t, testkit.Err(writer.WriteString(text)))
		testkit.Must(t, Cut(log, 3))
	}
	got := map[string]string{}
	for _, file := range []string{log, log + ".1"} {
		content := testkit.Need(os.ReadFile(file))(t)
		got[filepath.Base(file)] = string(content)
	}
	if diff := cmp.Diff(map[string]string{"x.log": "ghi", "x.log.1": "abcdef"}, got); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
}

func TestLocate(t *testing.T) {
	beside, inPath, other := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(beside, "a"), filepath.Join(inPath, "a"), filepath.Join(inPath, "b"), filepath.Join(beside, "credence")} {
		testkit.Must(t, os.WriteFile(file, nil, 0o755))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(beside, "b"), nil, 0o644))
	link := filepath.Join(other, "credence")
	testkit.Must(t, os.Symlink(filepath.Join(beside, "credence"), link))
	t.Setenv("PATH", inPath)
	for _, executable := range []string{filepath.Join(beside, "credence"), link} {
		if got, err := Locate("a", executable); err != nil || got != filepath.Join(beside, "a") {
			t.Errorf("a beside %s is %q (%v)", executable, got, err)
		}
		if got, err := Locate("b", executable); err != nil || got != filepath.Join(inPath, "b") {
			t.Errorf("b, which cannot be run beside %s, is %q (%v)", executable, got, err)
		}
	}
	_, err := Locate("c", filepath.Join(beside, "credence"))
	if err == nil || !strings.Contains(err.Error(), "program c was found neither in "+beside+" nor in PATH: run make build") {
		t.Errorf("c is found: %v", err)
	}
}

func TestCheckPort(t *testing.T) {
	t.Parallel()
	listener := testkit.Listen(t)
	port := testkit.Port(listener)
	err := CheckPort(port, "tea")
	want := fmt.Sprintf("port %d of 127.0.0.1, needed for tea, is taken by", port)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("a taken port: %v, want %q", err, want)
	}
	if ChildrenDieWithParent && !strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) {
		t.Errorf("%q does not name this process", err)
	}
	testkit.Must(t, listener.Close())
	// A program that another test is starting has a copy of the listener for a moment.
	testkit.Eventually(t, "the port is free", func() bool { return CheckPort(port, "tea") == nil })
}

func TestNames(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]bool{
		"/a/b": true, "/a/b/c": true, "--dir=/a/b": true, "--dir=/a/b/c": true,
		"/a/bc": false, "/x/a/b": false, "--dir=/a/bc": false, "--dir": false, "a/b": false,
	} {
		if got := names([]string{"program", argument}, "/a/b"); got != want {
			t.Errorf("%q names /a/b: %v, want %v", argument, got, want)
		}
	}
}

func TestLeftoversAreFoundAndEnded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine, other := self("stubborn", "--dir", folder), self("sleeper", "--dir", folder+"-other")
	for _, command := range []interface{ Start() error }{mine, other} {
		testkit.Must(t, command.Start())
	}
	ended := make(chan error, 1)
	go func() { ended <- mine.Wait() }()
	defer func() {
		_ = mine.Process.Kill()
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	program := []string{filepath.Base(executable())}
	var left []Running
	testkit.Eventually(t, "the leftover is found", func() bool {
		var err error
		if left, err = Leftovers(folder, program); err != nil {
			t.Fatal(err)
		}
		return len(left) > 0
	})
	if pids := []int{left[0].PID}; len(left) != 1 || !slices.Equal(pids, []int{mine.Process.Pid}) {
		t.Fatalf("leftovers are %v, want %d only", left, mine.Process.Pid)
	}
	if none, err := Leftovers(folder, []string{"credence"}); err != nil || len(none) != 0 {
		t.Errorf("leftovers of another program are %v (%v)", none, err)
	}
	testkit.Must(t, End(t.Context(), left, 0))
	<-ended
	if Alive(mine.Process.Pid) || !Alive(other.Process.Pid) {
		t.Errorf("alive: mine %v, the other's %v", Alive(mine.Process.Pid), Alive(other.Process.Pid))
	}
}

func TestEnvironmentPointsAtNoOtherCluster(t *testing.T) {
	t.Parallel()
	got := environment([]string{"HOME=/h", "KUBECONFIG=/k", "KUBERNETES_SERVICE_HOST=x", "KUBERNETES_SERVICE_PORT=1", "KUBECONFIGS=y"})
	if diff := cmp.Diff([]string{"HOME=/h", "KUBECONFIGS=y"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
