package e2e_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A Shoot names its infrastructure credentials in exactly one of two fields, and a user who changes that may use the old and the new binding. It
// runs alone: the kinds are of the whole cluster.
func TestPlaneBindingsOfShoots(t *testing.T) {
	p := alone(t)
	p.landscapesInstalled(t)
	ours := p.namespace(t)
	writer := "writer-" + ours
	use := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{"mine", "mine-too"}, Verbs: []string{"use"}}
	}
	p.role(t, ours, "writer", []rbacv1.PolicyRule{
		{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{"shoots"}, Verbs: []string{"*"}},
		use("core.gardener.cloud", "secretbindings"), use("authentication.gardener.cloud", "credentialsbindings"),
	}, writer)
	shoots := gardenerAPI + "/namespaces/" + ours + "/shoots"
	const (
		workers  = "provider: {workers: [{name: w}]}"
		both     = "spec.secretBindingName is incompatible with spec.credentialsBindingName"
		neither  = "a Shoot with workers needs infrastructure credentials"
		byOld    = "secretBindingName: mine"
		byNew    = "credentialsBindingName: mine"
		oldTheir = "secretBindingName: theirs"
		newTheir = "credentialsBindingName: theirs"
	)
	refused := func(binding string) string {
		return fmt.Sprintf("%s may not change the binding of a Shoot from or to %s %s/theirs: that needs the verb use on it; a cluster admin gives it with: kubectl create rolebinding NAME -n %s --clusterrole=credence:%s:user --user=%s",
			writer, binding, ours, ours, binding, writer)
	}
	for what, test := range map[string]struct {
		spec  string
		code  int
		words string
	}{
		"an old binding":             {byOld + ", " + workers, 201, ""},
		"an old binding of others":   {oldTheir + ", " + workers, 201, ""},
		"a new binding":              {byNew + ", " + workers, 201, ""},
		"both":                       {byOld + ", " + byNew + ", " + workers, 422, both},
		"both, without workers":      {byOld + ", " + byNew, 422, both},
		"neither":                    {workers, 422, neither},
		"an empty name":              {`secretBindingName: "", ` + workers, 422, neither},
		"neither, without workers":   {"provider: {workers: []}", 201, ""},
		"a Shoot without a provider": {"seedName: s", 201, ""},
	} {
		eventually(t, func() error {
			body := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {%s}}", test.spec)
			if err := wantAnswer(do(t, p.as(t, writer), "POST", shoots+"?dryRun=All", "application/yaml", body), test.code, test.words); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}

	// Before the policy was there, a Shoot could have both, or neither.
	p.must(t, "", "kubectl", "delete", "validatingadmissionpolicybinding", "credence-bindings.core.gardener.cloud")
	post := func(query, name, spec string, code int) {
		t.Helper()
		eventually(t, func() error {
			body := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: %s}, spec: {%s}}", name, spec)
			return wantAnswer(do(t, p.config(t), "POST", shoots+query, "application/yaml", body), code, "")
		})
	}
	create := func(name, spec string) {
		t.Helper()
		post("", name, spec, 201)
	}
	create("both", byOld+", "+byNew+", "+workers)
	create("neither", workers)
	p.must(t, shipped(t, "deploy/options/gardener.yaml"), "kubectl", "apply", "-f", "-")
	post("?dryRun=All", "again", workers, 422)
	for name, spec := range map[string]string{"old": byOld, "new": byNew, "old-of-others": oldTheir, "new-of-others": newTheir} {
		create(name, spec+", "+workers)
	}
	create("workerless", "seedName: s")

	for _, test := range []struct {
		shoot, patch string
		code         int
		words        string
	}{
		{"old", `{"credentialsBindingName":"mine"}`, 422, both},
		{"old", `{"secretBindingName":null}`, 422, neither},
		{"old", `{"secretBindingName":"theirs"}`, 403, refused("secretbindings")},
		{"old", `{"secretBindingName":null,"credentialsBindingName":"theirs"}`, 403, "--clusterrole=credence:credentialsbindings:user"},
		{"old", `{"secretBindingName":null,"credentialsBindingName":"mine"}`, 200, ""},
		{"old", `{"credentialsBindingName":"mine-too"}`, 200, ""},
		{"old", `{"secretBindingName":"theirs","credentialsBindingName":null}`, 403, refused("secretbindings")},
		{"old", `{"secretBindingName":"mine","credentialsBindingName":null}`, 200, ""},
		{"old-of-others", `{"seedName":"x"}`, 200, ""},
		{"old-of-others", `{"secretBindingName":null,"credentialsBindingName":"mine"}`, 403, refused("secretbindings")},
		{"new-of-others", `{"seedName":"x"}`, 200, ""},
		{"new-of-others", `{"credentialsBindingName":"mine"}`, 403, refused("credentialsbindings")},
		{"new-of-others", `{"credentialsBindingName":null,"provider":null}`, 403, refused("credentialsbindings")},
		{"both", `{"seedName":"x"}`, 200, ""},
		{"both", `{"credentialsBindingName":"mine-too"}`, 422, both},
		{"both", `{"secretBindingName":null}`, 200, ""},
		{"neither", `{"seedName":"x"}`, 200, ""},
		{"neither", `{"credentialsBindingName":"mine"}`, 200, ""},
		{"workerless", `{"provider":{"workers":[{"name":"w"}]}}`, 422, neither},
		{"workerless", `{"provider":{"workers":[{"name":"w"}]},"credentialsBindingName":"mine"}`, 200, ""},
	} {
		eventually(t, func() error {
			if err := wantAnswer(do(t, p.as(t, writer), "PATCH", shoots+"/"+test.shoot, mergePatch, `{"spec":`+test.patch+`}`), test.code, test.words); err != nil {
				return fmt.Errorf("%s of %s: %w", test.patch, test.shoot, err)
			}
			return nil
		})
	}
}
