package install

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/controlplane"
)

// formerSecret is what charts had of the Secret of the keys.
const formerSecret = `apiVersion: v1
kind: Secret
metadata:
  name: credence-keys
  namespace: credence-system
  annotations: {helm.sh/resource-policy: keep}
type: identity.credence.dev/key-ring
`

// A chart of before had the Secret of the keys. Its upgrades, forced ones among them, and uninstalling keep what programs have written there.
func TestKeysOverAnUpgrade(t *testing.T) {
	for program, force := range map[string][]string{"helm": {"--force-replace", "--server-side=false"}, "helm3": {"--force"}} {
		t.Run(program, func(t *testing.T) {
			folder := t.TempDir()
			cluster, err := controlplane.Start(t.Context(), folder, "--port", "0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Stop)
			kubeconfig := filepath.Join(folder, "admin.kubeconfig")
			helm := func(arguments ...string) (string, error) {
				t.Helper()
				stdout, stderr, err := runHelm(t, program, kubeconfig, append(arguments, "--namespace", system)...)
				return stdout + stderr, err
			}
			must := func(arguments ...string) {
				t.Helper()
				if printed, err := helm(arguments...); err != nil {
					t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, printed)
				}
			}
			const issuer = "issuer=https://id.example.com"
			file := packaged(t)
			if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", file, "-C", folder).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			former := filepath.Join(folder, "credence")
			if err := os.WriteFile(filepath.Join(former, "templates", "former.yaml"), []byte(formerSecret), 0o600); err != nil {
				t.Fatal(err)
			}
			must("install", "credence", former, "--create-namespace", "--set", issuer)

			config := rest.CopyConfig(cluster.Admin)
			config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:credence-system:credence-apiserver", Groups: []string{"system:masters"}}
			secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(system)
			stored, err := secrets.Get(t.Context(), "credence-keys", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ring := map[string][]byte{"ring.json": []byte("the ring"), strings.Repeat("A", 43) + ".pem": []byte("a key")}
			stored.Data = ring
			if _, err := secrets.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			stays := func(after string) {
				t.Helper()
				kept, err := secrets.Get(t.Context(), "credence-keys", metav1.GetOptions{})
				if err != nil || !maps.EqualFunc(kept.Data, ring, func(a, b []byte) bool { return string(a) == string(b) }) {
					t.Fatalf("keys after %s: %v, %d entries", after, err, len(kept.Data))
				}
			}
			if printed, err := helm(append([]string{"upgrade", "credence", former, "--set", issuer}, force...)...); err == nil || !strings.Contains(printed, "may neither remove nor change them") {
				t.Errorf("a forced upgrade of the former chart: %v\n%s", err, printed)
			}
			stays("a forced upgrade of the former chart")
			must("upgrade", "credence", file, "--set", issuer)
			stays("the upgrade")
			if manifest, err := helm("get", "manifest", "credence"); err != nil || strings.Contains(manifest, "kind: Secret") {
				t.Errorf("the release has a Secret: %v", err)
			}
			// Helm 3 takes what is stored for what the release before had, and would remove it.
			if printed, err := helm("rollback", "credence", "1"); (err == nil) != (program == "helm") {
				t.Errorf("going back: %v\n%s", err, printed)
			}
			stays("going back")
			must("upgrade", "credence", file, "--set", issuer)
			must("uninstall", "credence")
			stays("uninstalling")
		})
	}
}

// Helm prints that the keys have no backup, until the values make one.
func TestNotesWarnWithoutABackup(t *testing.T) {
	const recipient = "backup.recipients={age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p}"
	for name, test := range map[string]struct {
		set   string
		warns bool
	}{
		"defaults":            {"issuer=https://id.example.com", true},
		"identities alone":    {"issuer=https://id.example.com,backup.enabled=true,backup.ring=false", true},
		"keys":                {"issuer=https://id.example.com,backup.enabled=true," + recipient, false},
		"an external signer":  {"issuer=https://id.example.com,keys.signerSocket=/run/credence/signer/signer.sock", false},
		"no identities there": {"identities.enabled=false,workloads.identityKubeconfigSecret=identities", false},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := helm(t, "", "install", "credence", chart, "--namespace", system, "--dry-run=client", "--hide-notes=false", "--set", test.set)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			if strings.Contains(stdout, "WARNING: the signing keys have no backup") != test.warns {
				t.Errorf("want a warning: %v, got\n%s", test.warns, stdout[strings.Index(stdout, "NOTES:"):])
			}
		})
	}
}
