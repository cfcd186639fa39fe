package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// A cluster whose own API server trusts the issuer is noticed: by doctor, and when the server starts.
func TestPlaneHostThatTrustsTheIssuer(t *testing.T) {
	withPlane(t)
	if out, _, _ := shared.command(t, "", "credence", "doctor", "--ca-file", shared.CAFile); !strings.Contains(out, "the cluster does not take tokens") {
		t.Errorf("doctor of a cluster that does not trust the issuer:\n%s", out)
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "authentication.yaml")
	port := need(testkit.FreePorts(portsPerPlane))(t)
	// It is noticed whatever audience the cluster wants, and while it cannot read the documents of the issuer.
	configuration := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /readyz}, {path: /livez}, {path: /healthz}]}
jwt:
- issuer: {url: "https://127.0.0.1:%d/workload-identity", audiences: [another]}
  claimMappings: {username: {claim: sub, prefix: "workload:"}}
`, port+2)
	must(t, os.WriteFile(file, []byte(configuration), 0o600))
	t.Cleanup(func() { shared.must(t, "", "credence", "down", "--dir", dir) })
	up(t, "--dir", dir, "--port", fmt.Sprint(port), "--arg", "devcluster=--authentication-config="+file)
	p := need(readPlane(dir))(t)
	if out, _, _ := p.command(t, "", "credence", "doctor", "--ca-file", p.CAFile); !strings.Contains(out, "the cluster trusts "+p.Issuer) {
		t.Errorf("doctor of a cluster that trusts the issuer:\n%s", out)
	}
	log := need(os.ReadFile(filepath.Join(p.Dir, "logs", "apiserver.log")))(t)
	if !strings.Contains(string(log), "the cluster trusts the issuer of workload identities") {
		t.Errorf("the log of the API server:\n%s", log)
	}
}
