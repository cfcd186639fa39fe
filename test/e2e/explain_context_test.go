package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// explains is explain context of a Shoot: each user learns what the user may get, and which right is missing for the rest. The landscape has the
// Shoots foo, bar and closed, each with one identity on the cluster east, west and closed, of which the last may have no identities by its objects.
func (l landscape) explains(t *testing.T) {
	n, admin := l.namespace, ""
	shoot := "shoots." + landscapeGroup
	explained := func(user, object string, code int, words ...string) string {
		t.Helper()
		args := []string{"context", object, "-n", n}
		if user != "" {
			args = append(args, "--as", user)
		}
		text := l.explained(t, code, words, args...)
		if strings.Contains(text, "eyJ") {
			t.Errorf("a token is printed:\n%s", text)
		}
		return text
	}
	lea, max, eve := "lea-"+n, "max-"+n, "eve-"+n
	l.admin(t, n, lea)
	see := rbacv1.PolicyRule{APIGroups: []string{landscapeGroup}, Resources: []string{"shoots"}, Verbs: []string{"get"}}
	l.role(t, n, "sees-shoots", []rbacv1.PolicyRule{see}, lea)
	l.role(t, n, "sees-only-shoots", []rbacv1.PolicyRule{see}, max)

	// Refusals of an agent: a claim that is not known, a cluster that is closed, and one that is not there.
	explained(admin, shoot+"/foo", 1, "Shoot "+n+"/foo: refused", "the claim project of ContextKind "+shoot+" is not known", "refused   cluster east (409)")
	l.apply(t, `{"apiVersion":"%s/v1beta1","kind":"Project","metadata":{"name":"fruit"},"spec":{"namespace":%q}}`, landscapeGroup, n)
	explained(admin, shoot+"/closed", 1, "refused   cluster closed (403)", "WorkloadCluster closed may not have identities of the namespace "+n,
		"problem WorkloadCluster closed may not have identities of the namespace "+n)
	l.shoot(t, "astray", `{"seedName":"gone","dns":{"providers":[{"type":"d","workloadIdentity":{"name":"kiwi"}},{"type":"e","workloadIdentity":{"name":"nothing"}}]}}`, `{}`)
	explained(admin, shoot+"/astray", 1, "there is no such WorkloadCluster, so no agent requests tokens for it", `refused   you (404): workloadidentities.authentication.gardener.cloud "nothing" not found`)

	// The token of an agent.
	explained(admin, "Shoot.v1beta1."+landscapeGroup+"/foo", 0, "Shoot "+n+"/foo: admitted", "clusters    east\n", "identity "+n+"/kiwi\n",
		`token     cluster east: {"aud":["a"],`, `"seed":{"name":"east"`, "token     you: {", "secret    Secret shoot--foo/workloadidentity-dns-d in cluster east: identity "+n+"/kiwi")
	var x struct {
		Verdict string
		v1alpha1.ContextReviewStatus
	}
	must(t, json.Unmarshal([]byte(l.must(t, "", "credence", "explain", "context", shoot, "foo", "-n", n, "-o", "json")), &x))
	var promised map[string]any
	must(t, json.Unmarshal(x.References[0].Tokens[0].Claims.Raw, &promised))
	_, got := claims(t, token(t, l.east, n, "kiwi", inContext(n, "foo", string(x.ContextObject.UID))).Status.Token)
	for _, own := range []string{"iat", "nbf", "exp", "jti"} {
		delete(got, own)
	}
	if diff := cmp.Diff(got, promised); diff != "" || x.Verdict != "admitted" {
		t.Errorf("%s; the token of the agent and the claims (-token +explained):\n%s", x.Verdict, diff)
	}
	if text := l.must(t, "", "credence", "explain", "context", shoot, "foo", "-n", n, "-o", "yaml"); !strings.Contains(text, "verdict: admitted") {
		t.Error(text)
	}

	// An admin of the namespace, who may not get the Project, sees no claim of it, and may not have the token.
	text := explained(lea, shoot+"/foo", 3, "Shoot "+n+"/foo: unknown", `unknown     the claim project: User "`+lea+`" cannot get resource "projects" in API group "`+landscapeGroup+`" at the cluster scope`,
		`token     cluster east: {"aud":["a"],`, "refused   you (403)", `cannot create resource "workloadidentities/token"`)
	if strings.Contains(text, "fruit") {
		t.Errorf("it names the Project:\n%s", text)
	}
	l.clusterRole(t, "sees-projects-"+n, lea, rbacv1.PolicyRule{APIGroups: []string{landscapeGroup}, Resources: []string{"projects"}, ResourceNames: []string{"fruit"}, Verbs: []string{"get"}})
	explained(lea, shoot+"/foo", 0, "Shoot "+n+"/foo: admitted", `"project":{"name":"fruit"`, "refused   you (403)")

	// A user who may get the Shoot alone, of what the Shoot names nothing; one without rights, nothing.
	text = explained(max, shoot+"/foo", 3, "Shoot "+n+"/foo: unknown", "identity "+n+"/kiwi\n", `unknown   User "`+max+`" cannot get resource "workloadidentities"`)
	if strings.Contains(text, `"aud"`) || strings.Contains(text, "problem") {
		t.Errorf("it has the identity:\n%s", text)
	}
	if stdout, stderr, code := l.command(t, "", "credence", "explain", "context", shoot+"/foo", "-n", n, "--as", eve); code != 1 || !strings.Contains(stderr, `User "`+eve+`" cannot get resource "shoots"`) {
		t.Errorf("without rights: %d\n%s%s", code, stdout, stderr)
	}
	// The API server decides, and not the command.
	review := func(config *rest.Config, name string) response {
		return do(t, config, "POST", "/apis/identity.credence.dev/v1alpha1/contextreviews", "application/json", fmt.Sprintf(
			`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"ContextReview","spec":{"contextObject":{"apiVersion":"%s/v1beta1","kind":"Shoot","namespace":%q,"name":%q,"uid":%q}}}`, landscapeGroup, n, name, x.ContextObject.UID))
	}
	for name, c := range map[string]struct {
		config *rest.Config
		object string
		code   int
		words  string
	}{
		"without rights":                {l.as(t, eve), "foo", 403, `cannot get resource`},
		"without rights, nothing there": {l.as(t, eve), "nothing", 403, `cannot get resource`},
		"an agent":                      {l.east, "foo", 403, `cannot get resource`},
		"nothing there":                 {l.config(t), "nothing", 404, "not found"},
		"another uid":                   {l.config(t), "bar", 409, "perhaps it was deleted and created again"},
	} {
		expect(t, wantAnswer(review(c.config, c.object), c.code, c.words), name)
	}

	// By a binding, whose identity is of a namespace that the user may not look into.
	stray := l.plane.namespace(t)
	l.create(t, stray, "secret-name", "aws", "a")
	l.apply(t, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"namespace":%q,"name":"infra"},"provider":{"type":"aws"},"workloadIdentityRef":{"name":"secret-name","namespace":%q}}`, n, stray)
	l.shoot(t, "bound", `{"seedName":"east","credentialsBindingName":"infra"}`, `{"technicalID":"shoot--bound"}`)
	explained(admin, shoot+"/bound", 0, "identity "+stray+"/secret-name by CredentialsBinding "+n+"/infra", "Secret shoot--bound/cloudprovider in cluster east")
	explained(lea, shoot+"/bound", 3, `unknown   User "`+lea+`" cannot get resource "workloadidentities" in API group "authentication.gardener.cloud" in the namespace "`+stray+`"`)
	text = explained(max, shoot+"/bound", 3, "CredentialsBinding "+n+"/infra", `cannot get resource "credentialsbindings"`)
	if strings.Contains(text, "secret-name") {
		t.Errorf("it names the identity of a binding that the user may not get:\n%s", text)
	}

	// The longest name is that of tokens as any other. A Secret for it is not made, as no namespace has such a name.
	long := strings.Repeat("a", 253)
	l.shoot(t, long, `{"seedName":"east","dns":{"providers":[{"type":"d","workloadIdentity":{"name":"kiwi"}}]}}`, `{"technicalID":"shoot--`+long+`"}`)
	explained(admin, shoot+"/"+long, 1, "Shoot "+n+"/"+long+": refused", `token     cluster east: {"aud":["a"],`, "a Secret that is not known in cluster east", "is not the name of a namespace: it has 260 characters, and may have 63")
	uid := l.must(t, "", "kubectl", "get", shoot, long, "-n", n, "-o", "jsonpath={.metadata.uid}")
	_, got = claims(t, token(t, l.east, n, "kiwi", inContext(n, long, uid)).Status.Token)
	expect(t, same(any(map[string]any{"name": long, "namespace": n, "uid": uid}), got["gardener.cloud"].(map[string]any)["shoot"]), "claim shoot")
	l.must(t, "", "kubectl", "delete", shoot, long, "-n", n)

	// A kind that no ContextKind opens, and one that there is not.
	for kind, words := range map[string]string{
		"project." + landscapeGroup + "/fruit": "error: no ContextKind makes projects." + landscapeGroup + " contexts of tokens",
		"sa/default":                           "a user with the verb create on contextkinds may write one, who also needs in all namespaces get, list and watch on serviceaccounts",
		"nothing/default":                      `the API server has no kind "nothing"`,
	} {
		if stdout, stderr, code := l.command(t, "", "credence", "explain", "context", kind, "-n", n); code == 0 || !strings.Contains(stderr, words) {
			t.Errorf("%s: %d\n%s%s", kind, code, stdout, stderr)
		}
	}
	l.must(t, "", "kubectl", "delete", "project."+landscapeGroup, "fruit")
	l.must(t, "", "kubectl", "delete", "shoots."+landscapeGroup, "-n", n, "astray", "bound")
}
