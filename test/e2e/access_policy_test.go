package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Audit mode lets everything through, and its log gives the rights with which enforce does, too.
func TestAccessSuggest(t *testing.T) {
	inTurn(t)
	namespace, admin, editor := accessTeam(t)
	label := func(mode string) {
		shared.must(t, "", "kubectl", "label", "--overwrite", "namespace", namespace, "identity.credence.dev/account-use="+mode)
	}
	run := func(user, name string) (stderr string, code int) {
		_, stderr, code = shared.command(t, "", "kubectl", "run", name, "-n", namespace, "--as", user, "--image", "example.com/x",
			"--overrides", `{"spec":{"serviceAccountName":"cart"}}`)
		return stderr, code
	}
	enforce := func(refused string) { // waits until it is in effect
		label("enforce")
		eventually(t, func() error {
			stderr, code := run(refused, "refused")
			if code == 0 {
				shared.must(t, "", "kubectl", "delete", "pod", "refused", "-n", namespace, "--now")
				return errors.New("not refused yet")
			}
			if !strings.Contains(stderr, "credence access grant -n "+namespace+" -- "+refused+" cart") {
				return fatal{errors.New(stderr)}
			}
			return nil
		})
	}
	enforce(editor)
	label("audit")
	eventually(t, func() error {
		if stderr, code := run(editor, "recorded"); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	if stderr, code := run(admin, "with-the-right"); code != 0 {
		t.Fatal(stderr)
	}
	var manifests string
	eventually(t, func() error {
		args := []string{"access", "suggest"}
		for _, log := range auditLog(t, filepath.Join(shared.Dir, "devcluster", "audit.log")) {
			args = append(args, "--audit-log", log)
		}
		stdout, stderr, code := shared.command(t, "", "credence", args...)
		if code != 0 {
			return errors.New(stderr)
		}
		// The log is that of all tests.
		manifests = ""
		for document := range strings.SplitSeq(stdout, "---\n") {
			if strings.Contains(document, "namespace: "+namespace+"\n") {
				manifests += "---\n" + document
			}
		}
		if !strings.Contains(manifests, "name: "+editor+"\n") {
			return fmt.Errorf("suggested:\n%s", stdout)
		}
		return nil
	})
	if strings.Contains(manifests, admin) || strings.Count(manifests, "kind: RoleBinding") != 1 {
		t.Errorf("suggested:\n%s", manifests)
	}
	shared.must(t, manifests, "kubectl", "apply", "--as", admin, "-f", "-")
	shared.untilAllowed(t, namespace, editor, "use", "serviceaccounts", "cart")
	another := "joe-" + namespace
	shared.bind(t, namespace, "edit", user(another))
	enforce(another)
	if stderr, code := run(editor, "given"); code != 0 {
		t.Error(stderr)
	}
}

func TestAccessPolicy(t *testing.T) {
	inTurn(t)
	namespace, admin, editor := accessTeam(t)
	const group = "access-policy.e2e.example"
	crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"rollouts.` + group + `"},"spec":{"group":"` + group + `","names":{"kind":"Rollout","plural":"rollouts"},
"scope":"Namespaced","versions":[{"name":"v1alpha1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`
	policy := shared.must(t, "", "credence", "access", "policy", "--template", group+"/v1alpha1,rollouts=spec.template")
	t.Cleanup(func() {
		shared.must(t, policy, "kubectl", "delete", "--ignore-not-found", "-f", "-")
		shared.must(t, crd, "kubectl", "delete", "--ignore-not-found", "-f", "-")
	})
	shared.must(t, crd, "kubectl", "apply", "-f", "-")
	shared.must(t, policy, "kubectl", "apply", "-f", "-")
	shared.must(t, "", "kubectl", "label", "namespace", namespace, "identity.credence.dev/account-use=enforce")
	shared.role(t, namespace, "rollouts", []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{group}, Resources: []string{"rollouts"}}}, editor)
	apply := func(name string, replicas int, account string) (stderr string, code int) {
		manifest := fmt.Sprintf(`{"apiVersion":%q,"kind":"Rollout","metadata":{"name":%q,"namespace":%q},"spec":{"replicas":%d,"template":{"spec":{"serviceAccountName":%q}}}}`,
			group+"/v1alpha1", name, namespace, replicas, account)
		_, stderr, code = shared.command(t, manifest, "kubectl", "apply", "--as", editor, "-f", "-")
		return stderr, code
	}
	early := 0
	eventually(t, func() error { // until kind, right and policy are in effect
		stderr, code := apply(fmt.Sprintf("early-%d", early), 1, "cart")
		if code == 0 {
			early++
			return errors.New("the policy is not in effect")
		}
		if !strings.Contains(stderr, "may not use service account cart") {
			return errors.New(stderr)
		}
		return nil
	})
	for _, test := range []struct {
		name, account string
		replicas      int
		refused       bool
	}{
		{"app", "default", 1, false}, {"app", "cart", 1, true}, {"app", "default", 3, false}, {"early-0", "cart", 5, false},
	} {
		if test.name == "early-0" {
			shared.must(t, "", "credence", "access", "grant", "-n", namespace, "--as", admin, "--", editor, "cart")
			shared.untilAllowed(t, namespace, editor, "use", "serviceaccounts", "cart")
		}
		if stderr, code := apply(test.name, test.replicas, test.account); (code != 0) != test.refused {
			t.Errorf("%+v: %d, %s", test, code, stderr)
		}
	}
}
