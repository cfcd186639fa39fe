//go:build unix

package up

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/test/testkit"
)

// TestTheCommandsToTryWorkWhenPasted runs them with a kubectl and a credence that print what they are given.
func TestTheCommandsToTryWorkWhenPasted(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"kubectl", "credence"} {
		script := "#!/bin/sh\necho " + name + "\nfor a; do echo \"[$a]\"; done\n[ -t 0 ] || cat\n"
		testkit.Must(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	arguments := os.Args
	defer func() { os.Args = arguments }()
	os.Args = []string{filepath.Join(bin, "credence")}
	folder := t.TempDir()
	t.Chdir(folder)
	config, err := home.NewConfig(home.DefaultPort)
	testkit.Must(t, err)
	var out bytes.Buffer
	testkit.Must(t, writeSummary(&out, installation{dir: home.Dir(filepath.Join(folder, "Bob's $HOME")), config: config}))
	_, commands, _ := strings.Cut(out.String(), "Try next:\n")
	command := exec.Command("/bin/sh", "-c", commands)
	command.Env = []string{"PATH=" + bin + ":/bin:/usr/bin"}
	got, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	want := `kubectl
[--kubeconfig]
[Bob's $HOME/kubeconfig]
[create]
[-f]
[-]
` + demoIdentity + `
credence
[token]
[create]
[demo]
[--kubeconfig]
[Bob's $HOME/kubeconfig]
credence
[token]
[verify]
[-]
[--issuer]
[https://127.0.0.1:17445/workload-identity]
[--audience]
[demo]
[--ca-file]
[Bob's $HOME/ca.crt]
credence
[token]
[create]
[demo]
[--kubeconfig]
[Bob's $HOME/kubeconfig]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("what the commands do (-want +got):\n%s", diff)
	}
}
