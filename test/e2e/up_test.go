package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/testkit"
)

// upIn starts a plane of the test's own in the background, and stops it when the test ends.
func upIn(t *testing.T, dir string, port int) plane {
	t.Helper()
	t.Cleanup(func() { down(t, dir) })
	up(t, "--dir", dir, "--port", fmt.Sprint(port))
	return need(readPlane(dir))(t)
}

func down(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command(program("credence"), "down", "--dir", dir).CombinedOutput(); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
}

func status(dir string) error {
	if out, err := exec.Command(program("credence"), "status", "--dir", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("status: %w\n%s", err, out)
	}
	return nil
}

func portsOf(t *testing.T) int {
	t.Helper()
	return need(testkit.FreePorts(portsPerPlane))(t)
}

// processesOf returns the live processes whose command line names a folder.
func processesOf(t *testing.T, dir string) map[int]string {
	t.Helper()
	found := map[int]string{}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes under /proc: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(content, []byte(dir)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && pid != os.Getpid() {
			found[pid] = strings.ReplaceAll(string(content), "\x00", " ")
		}
	}
	return found
}

// facts are what must be the same after any stop.
type facts struct {
	Issuer, UID, Sub string
	JWKS             string
}

func factsOf(t *testing.T, p plane) facts {
	t.Helper()
	wi := p.read(t, identitiesPath("default")+"/kept") // of what was started again, kube-apiserver learns a moment later
	keys := need(p.publicClient(t).Get(p.JWKS))(t)
	defer keys.Body.Close()
	var jwks bytes.Buffer
	need(jwks.ReadFrom(keys.Body))(t)
	return facts{Issuer: wi.Status.Issuer, UID: string(wi.UID), Sub: wi.Status.Sub, JWKS: jwks.String()}
}

func TestPlaneStateOutlivesEveryStop(t *testing.T) {
	first(t, ofPlane, 2)
	dir, port := t.TempDir(), portsOf(t)
	p := upIn(t, dir, port)
	p.create(t, "default", "kept", "aws", "a")
	want := factsOf(t, p)
	old := token(t, p.config(t), "default", "kept", `{"duration":"48h"}`).Status.Token
	started := func(t *testing.T) plane { // and not stopped before the end of the whole test
		t.Helper()
		up(t, "--dir", dir, "--port", fmt.Sprint(port))
		return need(readPlane(dir))(t)
	}
	unchanged := func(p plane) {
		t.Helper()
		expect(t, same(want, factsOf(t, p)), "after a stop")
		p.must(t, old, "credence", "token", "verify", "-", "--issuer", p.Issuer, "--audience", "a", "--ca-file", p.CAFile)
		eventually(t, func() error {
			return do(t, p.config(t), "POST", tokenPath("default", "kept"), "application/json", tokenRequest(`{}`)).is(201)
		})
	}
	for _, component := range p.Components {
		t.Run("kill "+component.Name, func(t *testing.T) {
			// The supervisor starts it anew, and the others find it again.
			current := need(readPlane(dir))(t)
			for _, c := range current.Components {
				if c.Name == component.Name {
					kill(t, c.PID)
				}
			}
			eventually(t, func() error {
				now, err := readPlane(dir)
				if err != nil {
					return err
				}
				for _, c := range now.Components {
					if c.Name == component.Name && c.PID == component.PID {
						return fmt.Errorf("%s has not been started anew", c.Name)
					}
				}
				return status(dir)
			})
			unchanged(p)
		})
	}
	t.Run("kill everything", func(t *testing.T) {
		for pid := range processesOf(t, dir) {
			kill(t, pid)
		}
		eventually(t, func() error {
			if left := processesOf(t, dir); len(left) > 0 {
				return fmt.Errorf("still running: %v", left)
			}
			return nil
		})
		if status(dir) == nil {
			t.Error("status is healthy with everything killed")
		}
		unchanged(started(t))
	})
	t.Run("down and up", func(t *testing.T) {
		p.downWithAnOpenWatch(t)
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("after down still running: %v", left)
		}
		unchanged(started(t))
	})
	t.Run("deleted namespace", func(t *testing.T) {
		p.must(t, "", "kubectl", "delete", "namespace", "credence-system", "--wait=false")
		down(t, dir)
		unchanged(started(t))
	})
}

// downWithAnOpenWatch stops a plane whose API server has not ended by itself before. A watch does not delay the end.
func (p plane) downWithAnOpenWatch(t *testing.T) {
	t.Helper()
	config := p.config(t)
	var watch *http.Response
	eventually(t, func() (err error) {
		watch, err = need(rest.HTTPClientFor(config))(t).Get(config.Host + identitiesPath("default") + "?watch=1")
		if err == nil && watch.StatusCode != http.StatusOK {
			err = fmt.Errorf("watch: %s", watch.Status)
		}
		return err
	})
	defer watch.Body.Close()
	out, err := exec.CommandContext(t.Context(), program("credence"), "down", "--dir", p.Dir).CombinedOutput()
	if err != nil || strings.Contains(string(out), "killed") {
		t.Errorf("down: %v\n%s", err, out)
	}
	log, err := os.ReadFile(filepath.Join(p.Dir, "logs", "apiserver.log"))
	if err != nil || !bytes.Contains(log, []byte("Shutting down controller")) {
		t.Errorf("the API server did not shut down by itself: %v", err)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}

// Two planes run beside each other, and each interrupt ends one of them whole.
func TestPlaneInterruptLeavesNothing(t *testing.T) {
	withPlane(t)
	dir := t.TempDir()
	cmd := exec.Command(program("credence"), "up", "--dir", dir, "--port", fmt.Sprint(portsOf(t)))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started := starting(t)
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	eventually(t, func() error {
		select {
		case err := <-ended:
			return fatal{fmt.Errorf("up ended: %v\n%s", err, out.String())}
		default:
			return status(dir)
		}
	})
	started()
	eventually(t, func() error { return status(shared.Dir) })
	must(t, cmd.Process.Signal(os.Interrupt))
	<-ended
	eventually(t, func() error { // the kernel takes a moment to end what was killed
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("after Ctrl-C still running: %v\n%s", left, out.String())
		}
		return status(shared.Dir)
	})
}

func TestUpRefuses(t *testing.T) {
	inTurn(t)
	refused := func(t *testing.T, want []string, binary string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"up", "--detach"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH=/usr/bin:/bin")
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("up %v succeeded:\n%s", args, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		for _, text := range want {
			if !strings.Contains(lines[len(lines)-1], text) {
				t.Errorf("up %v ends with %q, which does not name %q", args, lines[len(lines)-1], text)
			}
		}
	}
	var sharedPort int
	need(fmt.Sscanf(shared.APIServer, "https://127.0.0.1:%d", &sharedPort))(t)
	t.Run("folder in use", func(t *testing.T) { refused(t, []string{shared.Dir}, program("credence"), "--dir", shared.Dir) })
	t.Run("busy port", func(t *testing.T) {
		dir := t.TempDir()
		refused(t, []string{fmt.Sprint(sharedPort)}, program("credence"), "--dir", dir, "--port", fmt.Sprint(sharedPort))
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("still running: %v", left)
		}
	})
	t.Run("no other programs", func(t *testing.T) {
		alone := filepath.Join(t.TempDir(), "credence")
		// By another process: while this one has the file open to write, each process that another test starts inherits it, and a file that
		// is open to write cannot be executed.
		if output, err := exec.CommandContext(t.Context(), "cp", program("credence"), alone).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		refused(t, []string{"credence-devcluster", "make build"}, alone, "--dir", t.TempDir())
	})
	t.Run("folder that cannot be made", func(t *testing.T) {
		refused(t, []string{"/proc/credence"}, program("credence"), "--dir", "/proc/credence")
	})
	t.Run("folder is a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, nil, 0o600))
		refused(t, []string{file}, program("credence"), "--dir", file)
	})
	t.Run("full disk", func(t *testing.T) {
		dir := t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("mounting a small file system needs Linux and root: %v: %s", err, out)
		}
		t.Cleanup(func() { expect(t, exec.Command("umount", dir).Run(), "unmount") })
		refused(t, []string{dir, "free"}, program("credence"), "--dir", dir, "--port", fmt.Sprint(portsOf(t)))
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("still running: %v", left)
		}
	})
}
