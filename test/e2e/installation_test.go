package e2e_test

import (
	"testing"
)

// The doctor compares what is installed with this version: an older role and a missing policy are named with the commands that mend them, and
// these do.
func TestPlaneDoctorComparesTheInstallation(t *testing.T) {
	p := alone(t)
	doctor := func(want ...string) {
		t.Helper()
		eventually(t, func() error {
			stdout, _, _ := p.command(t, "", "credence", "doctor")
			return lacks(stdout, want...)
		})
	}
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if _, stderr, code := p.command(t, stdin, "kubectl", args...); code != 0 {
			t.Fatalf("kubectl %s: %s", args, stderr)
		}
	}
	const apply, roles, guards = "kubectl apply --server-side --force-conflicts -f ", "deploy/base/11-metrics.yaml", "deploy/base/56-annotation-guards.yaml"
	mend := func(file string) { kubectl("", "apply", "--server-side", "--force-conflicts", "-f", "../../"+file) }
	doctor("pass     installation")
	t.Cleanup(func() { mend(guards) })
	t.Cleanup(func() { mend(roles) })
	kubectl(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "credence:metrics:reader"}, rules: [{nonResourceURLs: [/other], verbs: [get]}]}`,
		"apply", "--server-side", "--force-conflicts", "-f", "-")
	kubectl("", "delete", "validatingadmissionpolicybinding", "credence-annotations")
	doctor("rights were added: ClusterRole credence:metrics:reader has get on /other", "ClusterRole credence:metrics:reader lacks get on /metrics", apply+roles, "ValidatingAdmissionPolicyBinding credence-annotations is missing", apply+guards)
	mend(roles)
	mend(guards)
	doctor("pass     installation")

	// Guards from which requests were excepted.
	loosen := func(t *testing.T, kind, name, patch, undo string) {
		t.Helper()
		kubectl("", "patch", kind, name, "--type=json", "-p", patch)
		t.Cleanup(func() { kubectl("", "patch", kind, name, "--type=json", "-p", undo) })
	}
	t.Run("loosened", func(t *testing.T) {
		loosen(t, "validatingadmissionpolicybinding", "credence-annotations", `[{"op":"add","path":"/spec/matchResources","value":{"namespaceSelector":{"matchLabels":{"a":"b"}}}}]`, `[{"op":"remove","path":"/spec/matchResources"}]`)
		loosen(t, "mutatingwebhookconfiguration", "credence-webhook", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`, `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`)
		doctor("ValidatingAdmissionPolicyBinding credence-annotations has matchResources.namespaceSelector.matchLabels.a, which the manifest of this version does not have",
			" of MutatingWebhookConfiguration credence-webhook is not that of this version")
	})
	doctor("pass     installation")
}
