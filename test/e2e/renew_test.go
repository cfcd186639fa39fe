package e2e_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/tokensecret"
)

// credence runs the command with an exit code, and returns what it printed, which has the words.
func (p plane) credence(t *testing.T, code int, words []string, args ...string) string {
	t.Helper()
	stdout, stderr, got := p.command(t, "", "credence", args...)
	for _, word := range words {
		if !strings.Contains(stdout+stderr, word) {
			t.Errorf("credence %v: no %q in:\n%s%s", args, word, stdout, stderr)
		}
	}
	if got != code || strings.Contains(stdout+stderr, "eyJ") {
		t.Errorf("credence %v: exit code %d, want %d, and no token:\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout
}

// An admin of a namespace has the tokens of service accounts, of Secrets and of an identity renewed; other users, as far as they have the rights.
func TestRenewCommand(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	shared.accountOf(t, namespace, "api", "banana")
	lea, ann, eve := "lea-"+namespace, "ann-"+namespace, "eve-"+namespace
	shared.admin(t, namespace, lea)
	shared.role(t, namespace, "accounts", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "patch"}}}, ann)
	name, other := tokensecret.NameFor("web", "banana"), tokensecret.NameFor("api", "banana")
	_, before := shared.awaitToken(t, namespace, name, nil)
	_, others := shared.awaitToken(t, namespace, other, nil)
	renews := func(user string, code int, words []string, args ...string) {
		t.Helper()
		shared.credence(t, code, words, append([]string{"renew", "-n", namespace, "--as", user}, args...)...)
	}
	// is checks that a Secret has another token than before, or the same, right after the command has ended.
	is := func(what string, changed bool, secret string, last *carried) {
		t.Helper()
		if _, now := shared.awaitToken(t, namespace, secret, nil); (now.ID != last.ID) != changed {
			t.Errorf("%s: the token of Secret %s: another one is %v, want %v", what, secret, now.ID != last.ID, changed)
		} else {
			*last = now
		}
	}

	renews(lea, 0, []string{"ServiceAccount " + namespace + "/web: new tokens were requested, and all Secrets have them\n", "renewed   Secret " + namespace + "/" + name}, "sa/web")
	is("the account", true, name, &before)
	is("the account", false, other, &others)
	renews(lea, 0, []string{"renewed   Secret " + namespace + "/" + name}, "secret", name)
	is("the Secret", true, name, &before)
	renews(lea, 0, []string{`"verdict": "renewed"`, "requesting new tokens of 2 Secrets over 1s\n"}, "--all", "--identity", "banana", "--over", "1s", "-o", "json")
	is("all", true, name, &before)
	is("all", true, other, &others)

	// Without the right to see Secrets it is requested and not seen; without the right to patch, nothing is requested.
	renews(ann, 0, []string{"ServiceAccount " + namespace + "/api: new tokens were requested\n", "whether tokens are renewed is not seen", `cannot list resource "secrets"`}, "sa/api")
	shared.awaitToken(t, namespace, other, func(c carried) bool { return c.ID != others.ID })
	renews(ann, 1, []string{`cannot patch resource "secrets"`}, "secret/"+name)
	renews(eve, 1, []string{`cannot get resource "serviceaccounts"`}, "sa/web")
	renews(eve, 1, []string{"the Secrets were not looked at"}, "--all", "--identity", "banana")
	is("users without the right", false, name, &before)

	// Objects without tokens.
	shared.must(t, "", "kubectl", "create", "secret", "generic", "static", "-n", namespace)
	renews(lea, 1, []string{"error: Secret " + namespace + "/static has no label authentication.gardener.cloud/purpose=workload-identity-token-requestor"}, "secret/static")
	renews(lea, 1, []string{"error: no ContextKind makes configmaps contexts of tokens, so nothing follows an annotation of them"}, "cm/kube-root-ca.crt")
	renews(lea, 2, []string{"have no tokens of their own", "--all --identity NAME"}, "wi/banana")
	renews(lea, 1, []string{"not found"}, "--all", "--identity", "nothing")
}
