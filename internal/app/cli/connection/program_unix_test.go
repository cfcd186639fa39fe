//go:build unix

package connection_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/test/testkit"
)

// A program of the kubeconfig's user that hangs does not make a command hang that has a deadline.
func TestProgramOfTheKubeconfigThatHangs(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	testkit.Must(t, os.WriteFile(empty, nil, 0o600))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
		"users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "tail", "args": ["-f", %q]}}}],
		"contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}`, empty)
	testkit.Must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	var out, errOut bytes.Buffer
	root := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, cli.Options{})
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(t.Context(), root, []string{"whoami", "--kubeconfig", kubeconfig, "--request-timeout", "100ms"})
	}()
	select {
	case code := <-done:
		if code != 3 || !strings.Contains(errOut.String(), "hint: no request was sent to the API server") {
			t.Errorf("exit code %d\n%s", code, errOut.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for the program")
	}
}
