package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// landscapeGroup stands for core.gardener.cloud, whose objects are those of a document on the same plane.
const landscapeGroup = "core.e2e.example.com"

const contextKindsPath = "/apis/identity.credence.dev/v1alpha1/contextkinds"

// renamed is a file of the repository, with the group of this test.
func renamed(t *testing.T, file string) string {
	t.Helper()
	return strings.NewReplacer("core.gardener.cloud", landscapeGroup, "credence:contexts:gardener", "credence:contexts:e2e", "credence:secretbindings:user", "credence:secretbindings:e2e", "claim: seed", "claim: plot").Replace(shipped(t, file))
}

// gardenerInstalled applies the option for Gardener, with the group of this test, until the test ends.
func (p plane) gardenerInstalled(t *testing.T) {
	t.Helper()
	p.applied(t, renamed(t, "docs/howto/gardener-crds.yaml"), renamed(t, "deploy/options/gardener.yaml"))
}

// landscapeObject makes one on the shared plane.
func landscapeObject(t *testing.T, kind, namespace, name, spec string) string {
	t.Helper()
	return shared.landscapeObject(t, kind, namespace, name, spec)
}

// landscapeObject makes a Shoot or a Project, and returns its uid.
func (p plane) landscapeObject(t *testing.T, kind, namespace, name, spec string) string {
	t.Helper()
	path := "/apis/" + landscapeGroup + "/v1beta1/projects"
	if namespace != "" {
		path = "/apis/" + landscapeGroup + "/v1beta1/namespaces/" + namespace + "/shoots"
	}
	got := do(t, p.config(t), "POST", path, "application/json", fmt.Sprintf(`{"apiVersion":"%s/v1beta1","kind":%q,"metadata":{"name":%q},"spec":%s}`, landscapeGroup, kind, name, spec))
	var made metav1.PartialObjectMetadata
	if json.Unmarshal(got.Body, &made) != nil || got.Code != 201 {
		t.Fatalf("create %s %s: %d %s", kind, name, got.Code, got.Body)
	}
	return string(made.UID)
}

// inContext is a request for a token with a Shoot as its context.
func inContext(namespace, name, uid string) string {
	return fmt.Sprintf(`{"contextObject":{"apiVersion":"%s/v1beta1","kind":"Shoot","namespace":%q,"name":%q,"uid":%q}}`, landscapeGroup, namespace, name, uid)
}

// wantAnswer is an error unless an answer has a code and words.
func wantAnswer(got response, code int, words string) error {
	if got.Code != code || !strings.Contains(string(got.Body), words) {
		return fmt.Errorf("%d %s, want %d with %q", got.Code, got.Body, code, words)
	}
	return nil
}

// Shoots as the document and as Gardener has them are contexts, by the options that are shipped; other objects are not.
func TestPlaneContextKinds(t *testing.T) {
	withCluster(t)
	namespace, stray := shared.namespace(t), shared.namespace(t)
	shared.gardenerInstalled(t)
	wi := shared.create(t, namespace, "banana", "aws", "a")
	for _, name := range []string{"kiwi", "other"} {
		shared.create(t, namespace, name, "aws", "a")
	}
	shared.create(t, stray, "banana", "aws", "a")
	project := landscapeObject(t, "Project", "", "fruit-"+namespace, fmt.Sprintf(`{"namespace":%q}`, namespace))
	foo := landscapeObject(t, "Shoot", namespace, "foo", `{"seedName":"east","dns":{"providers":[{"type":"some-dns-provider","workloadIdentity":{"name":"banana"}}]}}`)
	shipped := landscapeObject(t, "Shoot", namespace, "shipped", `{"resources":[{"name":"r","resourceRef":{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","name":"kiwi"}}],"dns":{"providers":[{"credentialsRef":{"kind":"Secret","name":"other"}}]}}`)
	lost := landscapeObject(t, "Shoot", stray, "lost", `{"extensions":[{"type":"e","workloadIdentity":{"name":"banana"}}]}`)

	admin := shared.config(t)
	ask := func(config *rest.Config, namespace, identity, spec string) response {
		return do(t, config, "POST", tokenPath(namespace, identity), "application/json", tokenRequest(spec))
	}
	eventually(t, func() error {
		return wantAnswer(ask(admin, namespace, "banana", inContext(namespace, "foo", foo)), 201, "token")
	})
	_, got := claims(t, token(t, admin, namespace, "banana", inContext(namespace, "foo", foo)).Status.Token)
	want := map[string]any{
		"workloadIdentity": map[string]any{"name": "banana", "namespace": namespace, "uid": string(wi.UID)},
		"shoot":            map[string]any{"name": "foo", "namespace": namespace, "uid": foo},
		"project":          map[string]any{"name": "fruit-" + namespace, "uid": project},
		"garden":           map[string]any{"id": shared.gardenID(t)},
	}
	if diff := cmp.Diff(want, got["gardener.cloud"]); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if got["sub"] != wi.Status.Sub {
		t.Errorf("the token is of %v", got["sub"])
	}
	_, printed := claims(t, strings.TrimSpace(shared.must(t, "", "credence", "token", "create", "banana", "-n", namespace, "--context", "shoots."+landscapeGroup+"/foo")))
	if diff := cmp.Diff(want, printed["gardener.cloud"]); diff != "" {
		t.Errorf("claims of a token that was printed (-want +got):\n%s", diff)
	}
	eventually(t, func() error {
		return wantAnswer(ask(admin, namespace, "kiwi", inContext(namespace, "shipped", shipped)), 201, "token")
	})
	eventually(t, func() error { // the last that was made
		return wantAnswer(ask(admin, stray, "banana", inContext(stray, "lost", lost)), 409, "the claim project")
	})

	letsInOneShoot(t, namespace)

	// By a binding, a Shoot uses an identity of another namespace; of the same Shoot another one is not.
	shared.must(t, fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"name":"bound","namespace":%q},"provider":{"type":"aws"},"workloadIdentityRef":{"name":"banana","namespace":%q}}`, namespace, stray), "kubectl", "create", "-f", "-")
	bound := landscapeObject(t, "Shoot", namespace, "bound", `{"credentialsBindingName":"bound"}`)
	eventually(t, func() error {
		return wantAnswer(ask(admin, stray, "banana", inContext(namespace, "bound", bound)), 201, "token")
	})
	expect(t, wantAnswer(ask(admin, namespace, "banana", inContext(namespace, "bound", bound)), 403, "does not refer to"), "an identity that the binding does not refer to")

	// A person needs the right to act for the Shoot; to see it, or to assert accounts, is too little.
	viewer, holder, owner := "viewer-"+namespace, "holder-"+namespace, "owner-"+namespace
	tokens := rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}
	assert := rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities"}, Verbs: []string{"assert"}}
	on := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{landscapeGroup}, Resources: []string{"shoots"}, Verbs: verbs}
	}
	shared.role(t, namespace, "viewer", []rbacv1.PolicyRule{tokens, assert, on("get")}, viewer)
	shared.role(t, namespace, "holder", []rbacv1.PolicyRule{tokens, assert, on("impersonate")}, holder)
	shared.role(t, namespace, "owner", []rbacv1.PolicyRule{tokens, on("get", "impersonate")}, owner)
	eventually(t, func() error {
		return wantAnswer(ask(shared.as(t, owner), namespace, "banana", inContext(namespace, "foo", foo)), 201, "token")
	})
	for name, c := range map[string]struct {
		config              *rest.Config
		namespace, identity string
		spec                string
		code                int
		words               string
	}{
		"a viewer":             {shared.as(t, viewer), namespace, "banana", inContext(namespace, "foo", foo), 403, "cannot impersonate resource"},
		"who may not see it":   {shared.as(t, holder), namespace, "banana", inContext(namespace, "foo", foo), 403, "cannot get resource"},
		"another namespace":    {shared.as(t, owner), namespace, "banana", inContext(stray, "lost", lost), 403, "cannot get resource"},
		"another identity":     {admin, namespace, "other", inContext(namespace, "foo", foo), 403, "does not refer to WorkloadIdentity " + namespace + "/other"},
		"a namesake":           {admin, stray, "banana", inContext(namespace, "foo", foo), 403, "does not refer to WorkloadIdentity " + stray + "/banana"},
		"a Secret of the name": {admin, namespace, "other", inContext(namespace, "shipped", shipped), 403, "does not refer to"},
		"another uid":          {admin, namespace, "banana", inContext(namespace, "foo", shipped), 409, "perhaps it was deleted and created again"},
		"no such Shoot":        {admin, namespace, "banana", inContext(namespace, "bar", foo), 404, "bar"},
		"no namespace":         {admin, namespace, "banana", inContext("", "foo", foo), 422, "a Shoot has a namespace"},
		"no project":           {admin, stray, "banana", inContext(stray, "lost", lost), 409, "the claim project of ContextKind shoots." + landscapeGroup + " is not known"},
		"another version":      {admin, namespace, "banana", strings.Replace(inContext(namespace, "foo", foo), "v1beta1", "v1", 1), 422, landscapeGroup + "/v1beta1 Shoot"},
		"another kind":         {admin, namespace, "banana", strings.Replace(inContext(namespace, "foo", foo), "Shoot", "Project", 1), 422, landscapeGroup + "/v1beta1 Shoot"},
	} {
		if err := wantAnswer(ask(c.config, c.namespace, c.identity, c.spec), c.code, c.words); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

}

// letsInOneShoot has a relying party take tokens of one Shoot alone, by its uid: of the identity guest those of any bearer, of tight those of one cluster.
func letsInOneShoot(t *testing.T, namespace string) {
	t.Helper()
	east, west := "east-of-"+namespace, "west-of-"+namespace
	for _, name := range []string{east, west} {
		shared.joinCluster(t, name, []string{name}, []string{namespace})
		shared.bind(t, namespace, "credence:agent:identities", user(name))
	}
	subjects := map[string]string{}
	for _, name := range []string{"guest", "tight"} {
		subjects[name] = shared.create(t, namespace, name, "generic", "party").Status.Sub
	}
	uses := fmt.Sprintf(`{"seedName":%q,"extensions":[{"type":"e","workloadIdentity":{"name":"guest"}},{"type":"t","workloadIdentity":{"name":"tight"}}]}`, east)
	first, twin := landscapeObject(t, "Shoot", namespace, "first", uses), landscapeObject(t, "Shoot", namespace, "twin", uses)
	shared.patchShoot(t, namespace, "first", fmt.Sprintf(`{"status":{"seedName":%q}}`, west)) // it moves, and is on both
	object := "shoots." + landscapeGroup + "/" + namespace + "/first"
	configuration := map[string]any{}
	var rules []any
	for _, args := range [][]string{{"guest", "--context-object", object}, {"tight", "--context-object", object, "--cluster", east}} {
		configuration, _ = trusted(t, namespace, args...)
		rules = append(rules, configuration["jwt"].([]any)[0].(map[string]any)["claimValidationRules"].([]any)...)
	}
	party := trusting(t, configuration, rules)
	admin, ofEast, ofWest := shared.config(t), shared.as(t, east), shared.as(t, west)
	for _, of := range []struct {
		what, identity, spec string
		caller               *rest.Config
		taken                bool
	}{ // first the one by which the keys of the issuer are fetched
		{"the Shoot, a person", "guest", inContext(namespace, "first", first), admin, true},
		{"the Shoot, the agent of one cluster", "guest", inContext(namespace, "first", first), ofEast, true},
		{"another Shoot", "guest", inContext(namespace, "twin", twin), admin, false},
		{"no Shoot", "guest", `{}`, admin, false},
		{"the Shoot, of its cluster", "tight", inContext(namespace, "first", first), ofEast, true},
		{"the Shoot, of the other cluster that it is on", "tight", inContext(namespace, "first", first), ofWest, false},
		{"the Shoot, of no cluster", "tight", inContext(namespace, "first", first), admin, false},
		{"another Shoot of the cluster", "tight", inContext(namespace, "twin", twin), ofEast, false},
		{"no Shoot of the cluster", "tight", `{}`, ofEast, false},
	} {
		what, issued := of.what, ""
		eventually(t, func() error {
			got := do(t, of.caller, "POST", tokenPath(namespace, of.identity), "application/json", tokenRequest(of.spec))
			if got.Code != 201 {
				return fmt.Errorf("%s: %d %s", what, got.Code, got.Body)
			}
			issued = decodeTokenRequest(t, got).Status.Token
			return nil
		})
		if of.taken {
			eventually(t, func() error {
				name, err := whoami(t, party, issued)
				if err != nil || name != "credence:"+subjects[of.identity] {
					return fmt.Errorf("%s is %q: %w", what, name, err)
				}
				return nil
			})
		} else if name, err := whoami(t, party, issued); err == nil {
			t.Errorf("%s is let in as %s", what, name)
		}
	}
}

// contextKind is one of Shoots with other values in place of its own.
func contextKind(oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"ContextKind","metadata":{"name":"trees.orchard.example.com"},"spec":{` +
		`"object":{"group":"orchard.example.com","version":"v1","resource":"trees","kind":"Tree"},"claim":"tree",` +
		`"references":[{"name":"all","workloadIdentities":"object.spec.identities"}],` +
		`"related":[{"claim":"orchard","resource":"orchards","key":"candidate.metadata.name","of":"object.metadata.namespace"}]}}`)
}

func TestContextKindWriters(t *testing.T) {
	inTurn(t)
	gardener, tree := shared.namespace(t), rbacv1.PolicyRule{APIGroups: []string{"orchard.example.com"}, Resources: []string{"trees", "orchards"}, Verbs: []string{"get", "list", "watch"}}
	kinds := rbacv1.PolicyRule{APIGroups: []string{"identity.credence.dev"}, Resources: []string{"contextkinds"}, Verbs: []string{"*"}}
	tokens := rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}
	user := func(name string, rules ...rbacv1.PolicyRule) *rest.Config {
		name += "-" + gardener
		shared.clusterRole(t, name, name, append(rules, kinds)...)
		shared.untilAllowed(t, "", name, "patch", "contextkinds.identity.credence.dev", "")
		return shared.as(t, name)
	}
	blind := tree
	blind.Verbs = []string{"get", "list"}
	narrow := tree
	narrow.Resources = []string{"trees"}
	write := func(config *rest.Config, body string) response {
		return do(t, config, "POST", contextKindsPath, "application/json", body)
	}
	whole, reader := user("whole", tree, tokens), user("reader", tree)
	eventually(t, func() error { return wantAnswer(write(whole, contextKind()), 201, "trees") })
	t.Cleanup(func() {
		shared.must(t, "", "kubectl", "delete", "--ignore-not-found", "contextkind", "trees.orchard.example.com")
	})
	path := contextKindsPath + "/trees.orchard.example.com"
	// A user without any right may read it, and write none.
	plain := shared.as(t, "plain-"+gardener)
	expect(t, wantAnswer(do(t, plain, "GET", contextKindsPath, "", ""), 200, "trees.orchard.example.com"))
	expect(t, wantAnswer(write(plain, contextKind()), 403, "cannot create resource"))
	if got := shared.must(t, "", "kubectl", "get", "contextkind", "trees.orchard.example.com"); !strings.Contains(got, "orchard.example.com/v1 Tree") || !strings.Contains(got, "tree,orchard") {
		t.Errorf("kubectl get:\n%s", got)
	}
	// The cluster looks at the API's description now and then.
	eventually(t, func() error {
		if _, stderr, code := shared.command(t, "", "kubectl", "explain", "contextkind.spec.references"); code != 0 {
			return fmt.Errorf("kubectl explain: %s", stderr)
		}
		return nil
	})

	// To label one is not to write it.
	if got := do(t, reader, "PATCH", path, "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`); got.Code != 200 {
		t.Errorf("label: %d %s", got.Code, got.Body)
	}
	for name, c := range map[string]struct {
		config *rest.Config
		method string
		body   string
		code   int
		words  string
	}{
		"no tokens":               {reader, "POST", contextKind("trees.", "others."), 422, "metadata.name"},
		"no tokens, another spec": {reader, "PATCH", `{"spec":{"claim":"trunk"}}`, 403, `cannot create resource \"workloadidentities/token\"`},
		"no watch":                {user("blind", blind, tokens), "PATCH", `{"spec":{"claim":"trunk"}}`, 403, `cannot watch resource \"trees\" in API group \"orchard.example.com\"`},
		"no related":              {user("narrow", narrow, tokens), "PATCH", `{"spec":{"claim":"trunk"}}`, 403, `cannot get resource \"orchards\"`},
		"another object":          {whole, "PATCH", `{"spec":{"object":{"kind":"Shrub"}}}`, 422, "field is immutable"},
		"another name":            {whole, "POST", contextKind("trees.orchard", "tree.orchard"), 422, "must be trees.orchard.example.com"},
		"twice":                   {whole, "POST", contextKind(), 409, "already exists"},
		"a claim of another":      {whole, "POST", contextKind("trees", "orchards", `"Tree"`, `"Orchard"`, `"claim":"orchard","resource":"orchards"`, `"claim":"park","resource":"trees"`), 422, "the claim tree is that of another resource in ContextKind trees.orchard.example.com"},
		"a kind of another":       {whole, "POST", contextKind("trees", "orchards", `"claim":"tree"`, `"claim":"wood"`), 422, "the kind Tree is that of another resource"},
		"syntax":                  {whole, "PATCH", `{"spec":{"clusters":"object.["}}`, 422, "does not compile"},
		"a wrong type":            {whole, "PATCH", `{"spec":{"clusters":"1"}}`, 422, "must evaluate to list(string)"},
		"too much":                {whole, "PATCH", `{"spec":{"clusters":"object.a.filter(a, object.a.exists(b, object.a.exists(c, object.a.exists(d, a == d))))"}}`, 422, "costs too much"},
		"a reserved claim":        {whole, "PATCH", `{"spec":{"claim":"seed"}}`, 422, "the claim seed is reserved"},
		"Secrets":                 {shared.config(t), "POST", contextKind("trees.orchard.example.com", "secrets", `"group":"orchard.example.com",`, "", `"trees"`, `"secrets"`, `"Tree"`, `"Secret"`), 422, "Secrets are never read"},
	} {
		at, contentType := contextKindsPath, "application/json"
		if c.method == "PATCH" {
			at, contentType = path, "application/merge-patch+json"
		}
		if err := wantAnswer(do(t, c.config, c.method, at, contentType, c.body), c.code, c.words); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
