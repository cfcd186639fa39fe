package provider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/credential"
)

const role = "CREDENTIAL_TEST_ROLE"

// TestMain runs this program as the small program that cannot replace itself, and as the one that it starts.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "between":
		_ = os.Setenv(role, "child")
		code, err := between(os.Args[0], []string{os.Args[0]})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	case "child":
		client := credential.Client(os.Getenv)
		fmt.Printf("%d/%s/%s", client.PID, client.Started, client.Program)
		os.Exit(7)
	case "grandchild":
		// As a client that runs a program of its own with all that it inherited.
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = append(os.Environ(), role+"=child"), os.Stdout
		_ = cmd.Run()
	default:
		os.Exit(m.Run())
	}
}

func play(t *testing.T, part string, environment ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), role+"="+part), environment...)
	var out bytes.Buffer
	cmd.Stdout = &out
	_ = cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}

// Where a program stands between, its child still knows the client: "asked again by the same one" stays true.
func TestTheClientBehindTheProgramBetween(t *testing.T) {
	if credential.Parent().Started == "" {
		t.Skipf("%s does not tell when a process was started", runtime.GOOS)
	}
	us := strings.TrimPrefix(credential.CallerEnvironment(os.Getenv), "CREDENCE_CREDENTIAL_CALLER=")
	us, _, _ = strings.Cut(us, " ")
	if got, code := play(t, "between"); got != us || code != 7 {
		t.Errorf("the client is %s with exit code %d, want %s with 7", got, code, us)
	}
}

// A value that is inherited from further up, or set by another process, is not trusted.
func TestWhoStandsBetweenIsTheParentAlone(t *testing.T) {
	own := credential.CallerEnvironment(os.Getenv)
	if own == "" {
		t.Skipf("%s does not tell when a process was started", runtime.GOOS)
	}
	name, value, _ := strings.Cut(own, "=")
	us, _, _ := strings.Cut(value, " ")
	for _, said := range []string{
		"", "x", "1/1/1 2/2/2", us, us + " ", us + " 0/1/", us + " -1/1/", us + "1 2/2/", " 2/2/", us + " 2", "1/" + us + " 2/2/", us + "/ 2/2/", us + "  2/2/",
	} {
		got, _ := play(t, "child", name+"="+said)
		if got != us {
			t.Errorf("%q: the client is %s, want %s", said, got, us)
		}
	}
	if got, _ := play(t, "child", name+"="+us+" 2/22/3"); got != "2/22/3" {
		t.Errorf("the parent is not believed: the client is %s", got)
	}
	// Its child's parent is another process than the one that wrote it.
	if got, _ := play(t, "grandchild", name+"="+us+" 2/22/3"); got == "" || got == "2/22/3" {
		t.Errorf("what was inherited is believed: %s", got)
	}
}
