package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noDocuments keeps every user from writing the published documents.
const noDocuments = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-documents}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  matchConditions: [{name: documents, expression: "object.metadata.name == 'credence-discovery'"}]
  validations: [{expression: "false", message: "no documents are published today"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-documents}
spec: {policyName: no-documents, validationActions: [Deny]}
`

// TestPlaneRevokedKeyStaysPublished: where the documents cannot be published, a revocation is not a success, and every place that
// reports on the keys has it.
func TestPlaneRevokedKeyStaysPublished(t *testing.T) {
	first(t, ofPlane, 2)
	p := newPlane(t)
	var spare string
	eventually(t, func() error {
		ring := p.keyRing(t)
		if !meta.IsStatusConditionTrue(ring.Status.Conditions, "Withdrawn") {
			return fmt.Errorf("conditions: %+v", ring.Status.Conditions)
		}
		spare = key(t, ring, "ES256", "spare").ID
		return nil
	})
	reader := p.metricsReader(t, p.namespace(t))
	const revokedKeyPublished = `credence_keys_condition{type="RevokedKeyPublished"} `
	p.awaitMetric(t, "controller", reader, revokedKeyPublished+"0")
	p.must(t, noDocuments, "kubectl", "apply", "-f", "-")
	eventually(t, func() error {
		configMaps := p.client(t).CoreV1().ConfigMaps("credence-system")
		current, err := configMaps.Get(t.Context(), "credence-discovery", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Labels = map[string]string{"example.com/tried": "yes"}
		_, err = configMaps.Update(t.Context(), current, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "no documents are published today") {
			return fmt.Errorf("the policy is not in force yet: %v", err)
		}
		return nil
	})
	out, code := p.run(t, "credence", "keys", "revoke", spare, "--reason", "leaked", "--yes", "--wait", "30s")
	if code != 1 || !strings.Contains(out, "error: key "+spare+" is revoked, but still published in ConfigMap credence-system/credence-discovery") {
		t.Errorf("exit code %d, want 1:\n%s", code, out)
	}
	eventually(t, func() error {
		withdrawn := meta.FindStatusCondition(p.keyRing(t).Status.Conditions, "Withdrawn")
		if withdrawn == nil || withdrawn.Status != metav1.ConditionFalse || withdrawn.Reason != "RevokedKeyPublished" || !strings.Contains(withdrawn.Message, spare) {
			return fmt.Errorf("condition %+v", withdrawn)
		}
		return nil
	})
	if out, code := p.run(t, "credence", "doctor", "--ca-file", p.CAFile); code != 1 || !strings.Contains(out, "RevokedKeyPublished") {
		t.Errorf("doctor: exit code %d, want 1 and the condition:\n%s", code, out)
	}
	p.awaitMetric(t, "controller", reader, revokedKeyPublished+"1")
	p.must(t, noDocuments, "kubectl", "delete", "-f", "-")
	p.must(t, "", "kubectl", "wait", "keyring/workload-identities", "--for=condition=Withdrawn", "--timeout=5m")
	p.awaitMetric(t, "controller", reader, revokedKeyPublished+"0")
	shown := p.must(t, "", "kubectl", "get", "configmap", "credence-discovery", "-n", "credence-system", "-o", "jsonpath={.data.jwks\\.json}")
	if strings.Contains(shown, spare) {
		t.Errorf("the revoked key is published:\n%s", shown)
	}
	p.probe(t)
}

// probe: a relying party that keeps its keys until it meets an unknown one accepts a revoked key until it is shown a probe.
func (p plane) probe(t *testing.T) {
	t.Helper()
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "team")
	ctx := oidc.ClientContext(t.Context(), p.publicClient(t))
	provider := need(oidc.NewProvider(ctx, p.Issuer))(t)
	verifier := provider.Verifier(&oidc.Config{ClientID: "team"})
	issued := token(t, p.config(t), namespace, "one", `{}`).Status.Token
	must(t, errOf(verifier.Verify(ctx, issued)), "a good token")
	header, _ := claims(t, issued)
	p.must(t, "", "credence", "keys", "revoke", header.KeyID, "--reason", "leaked", "--yes", "--accept-refusals", "--ca-file", p.CAFile)
	must(t, errOf(verifier.Verify(ctx, issued)), "the relying party needs no probe")
	shown := strings.TrimSpace(p.must(t, "", "credence", "keys", "probe", "--audience", "team"))
	eventually(t, func() error {
		_, err := verifier.Verify(ctx, shown)
		switch {
		case err == nil:
			return fatal{errors.New("a probe is accepted")}
		case strings.Contains(err.Error(), "fetching keys"):
			return err // on a busy machine: the relying party keeps the keys that it has
		}
		return nil
	})
	if _, err := verifier.Verify(ctx, issued); err == nil {
		t.Error("a token of the revoked key is accepted after a probe")
	}
}

// run runs a program at the plane and returns all that it printed, and its exit code.
func (p plane) run(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(name), args...)
	command.Env = append(command.Environ(), "KUBECONFIG="+p.Kubeconfig)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out), command.ProcessState.ExitCode()
}
