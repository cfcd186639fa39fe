package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// A plane that was run without root has a node once its folder belongs to root, as the tutorial has it, and is the same issuer.
func TestNodeHandOverToRoot(t *testing.T) {
	needNode(t)
	bin := programsForOthers(t)
	first(t, ofPlane+ofNode, 1)
	home := filepath.Join(bin, "home")
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, otherUser, otherUser))
	port := need(testkit.FreePorts(portsPerPlane))(t)
	dir := filepath.Join(home, ".credence")
	credence := func(user uint32, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "credence"), append(args, "--dir", dir)...)
		cmd.Dir, cmd.Env = bin, append(os.Environ(), "HOME="+home, "TMPDIR="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(user uint32, args ...string) {
		t.Helper()
		if out, err := credence(user, args...); err != nil {
			t.Fatalf("credence %v as user %d: %v\n%s", args, user, err, out)
		}
	}
	t.Cleanup(func() { down(t, dir) })
	must(otherUser, "up", "--detach", "--port", fmt.Sprint(port))
	before := need(readPlane(dir))(t)
	before.create(t, "default", "kept", "aws", "a")
	want := factsOf(t, before)
	must(otherUser, "down")

	if out, err := credence(0, "up", "--node", "--detach"); err == nil || !strings.Contains(out, "hand it over: chown -R root: "+dir) {
		t.Errorf("up as root in the folder of another user: %v, %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", "root:", dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v\n%s", err, out)
	}
	must(0, "up", "--node", "--detach")
	after := need(readPlane(dir))(t)
	if got := factsOf(t, after); got != want {
		t.Errorf("the plane has %+v, before it had %+v", got, want)
	}
	if out := after.must(t, "", "kubectl", "get", "nodes"); !strings.Contains(out, " Ready ") {
		t.Errorf("kubectl get nodes prints\n%s", out)
	}
}
