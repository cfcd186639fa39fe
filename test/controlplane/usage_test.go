package controlplane_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
)

// Each server, and what starts them, ends with 2 on a wrong flag, and names it: it need not be tried again.
func TestUsageErrorsOfServers(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for line, flag := range map[string]string{
		"credence-server apiserver --issuer http://a.example":                "--issuer: ",
		"credence-server storage copy --from nowhere --to cluster":           "--from ",
		"credence-server controller --issuer http://a.example":               "--issuer: ",
		"credence-server agent --concurrency -1":                             "--concurrency -1",
		"credence-server agent":                                              "--kubeconfig is missing",
		"credence-server binder --health-port 99999":                         "--health-port 99999",
		"credence-server binder":                                             "--kubeconfig is missing",
		"credence-server certificates --health-port 99999":                   "--health-port 99999",
		"credence-server profiles --health-port 99999":                       "--health-port 99999",
		"credence-server webhook --port 99999":                               "--tls-cert-file ",
		"credence-server webhook --tls-cert-file a --tls-private-key-file b": "--kubeconfig is missing",
		"credence-server signer --issuer https://a.example":                  "--keys-dir is missing",
		"credence-discovery --max-age 0s":                                    "--max-age 0s",
		"credence-discovery --issuer https://a.example --tls-cert-file a --tls-private-key-file b --documents-configmap c/d": "--kubeconfig is missing",
		"credence-node csi --node-name a --kubelet-dir / --health-port 99999":                                                "--health-port 99999",
		"credence-node csi --node-name a --kubelet-dir /":                                                                    "--kubeconfig is needed",
		"credence-node guard --node-name a --listen b":                                                                       "--listen",
		"credence-registry --registries /nowhere":                                                                            "--registries: ",
		"credence up --port 99999":                                                                                           "--port 99999",
		"credence up --storage disk":                                                                                         "--storage ",
		"credence up --delivery mail":                                                                                        "--delivery ",
		"credence up --arg nonsense":                                                                                         "--arg ",
		"credence-devcluster --dir a --port x":                                                                               "--port",
		"credence-devcluster":                                                                                                "--dir",
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			command := exec.CommandContext(t.Context(), controlplane.Program(words[0]), words[1:]...)
			command.Dir = t.TempDir()
			out, err := command.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), flag) {
				t.Errorf("%v, want exit code 2 and %q:\n%s", err, flag, out)
			}
		})
	}
}
