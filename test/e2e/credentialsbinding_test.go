package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// bindingSample is the CredentialsBinding of GEP-26, "Shoot API Related Changes", as the document writes it but for the namespace and one of
// its two references.
const bindingSample = `apiVersion: authentication.gardener.cloud/v1alpha1
kind: CredentialsBinding
metadata:
  name: my-credentials
  namespace: %s
provider:
  type: aws # {aws,azure,gcp,...}
%squotas: []
# - name: quota-1
# # namespace: garden-quotas
`

const (
	sampleSecretRef = `secretRef: # unlike SecretBindings, this field will be optional and mutable
  name: static
  # namespace: "...", allow reference across namespaces
`
	sampleIdentityRef = `workloadIdentityRef:
  name: banana-testing
  # namespace: "...", allow reference across namespaces
`
)

const credentialsBindings = "credentialsbindings.authentication.gardener.cloud"

func bindingsPath(namespace string) string {
	return "/apis/authentication.gardener.cloud/v1alpha1/namespaces/" + namespace + "/credentialsbindings"
}

func bindingJSON(name, references string) string {
	return fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"name":%q},"provider":{"type":"aws"}%s}`, name, references)
}

func (p plane) credentialsBinding(t *testing.T, namespace, name string) v1alpha1.CredentialsBinding {
	t.Helper()
	var binding v1alpha1.CredentialsBinding
	must(t, json.Unmarshal([]byte(p.must(t, "", "kubectl", "-n", namespace, "get", "cb", name, "-o", "json")), &binding))
	return binding
}

// The sample of the document is flipped between a Secret and an identity by each way to apply it, and stays as it is if it is applied again.
func TestCredentialsBindingOfTheDocument(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.create(t, namespace, "banana-testing", "aws", "a")
	both := fmt.Sprintf(bindingSample, namespace, sampleSecretRef+sampleIdentityRef)
	if _, stderr, code := shared.command(t, both, "kubectl", "apply", "-f", "-"); code == 0 || !strings.Contains(stderr, "exactly one of the two") {
		t.Errorf("both references: exit code %d, %s", code, stderr)
	}
	for _, apply := range [][]string{{"apply"}, {"apply", "--server-side"}, {"replace"}} {
		t.Run(strings.Join(apply, " "), func(t *testing.T) {
			shared.must(t, "", "kubectl", "-n", namespace, "delete", "cb", "my-credentials", "--ignore-not-found")
			shared.must(t, fmt.Sprintf(bindingSample, namespace, sampleSecretRef), "kubectl", "create", "--save-config", "-f", "-")
			if apply[0] == "apply" {
				shared.must(t, "", "kubectl", "-n", namespace, "delete", "cb", "my-credentials")
			}
			for i, reference := range []string{sampleSecretRef, sampleIdentityRef, sampleSecretRef} {
				manifest := fmt.Sprintf(bindingSample, namespace, reference)
				shared.must(t, manifest, "kubectl", append(apply, "-f", "-")...)
				first := shared.credentialsBinding(t, namespace, "my-credentials")
				want := v1alpha1.CredentialsReference{Namespace: namespace, Name: "static"}
				got, other := first.SecretRef, first.WorkloadIdentityRef
				if i == 1 {
					want.Name = "banana-testing"
					got, other = other, got
				}
				if got == nil || *got != want || other != nil {
					t.Fatalf("references %+v and %+v, want %+v alone", first.SecretRef, first.WorkloadIdentityRef, want)
				}
				shared.must(t, manifest, "kubectl", append(apply, "-f", "-")...)
				if again := shared.credentialsBinding(t, namespace, "my-credentials"); again.Generation != first.Generation {
					t.Errorf("applied again, generation %d became %d", first.Generation, again.Generation)
				}
			}
		})
	}
	if out := shared.must(t, "", "kubectl", "-n", namespace, "get", "credence"); !strings.Contains(out, "Secret "+namespace+"/static") {
		t.Errorf("get prints\n%s", out)
	}
	// The cluster looks at the API's description now and then.
	eventually(t, func() error {
		if out, stderr, _ := shared.command(t, "", "kubectl", "explain", "cb.secretRef"); !strings.Contains(out, "with static credentials") {
			return fmt.Errorf("explain prints\n%s%s", out, stderr)
		}
		return nil
	})
}

// A writer of a binding refers to nothing that they could not get or use without it.
func TestCredentialsBindingWriters(t *testing.T) {
	inTurn(t)
	namespace, elsewhere := shared.namespace(t), shared.namespace(t)
	for _, name := range []string{"usable", "other"} {
		shared.create(t, namespace, name, "aws", "a")
	}
	shared.create(t, namespace, "google", "gcp", "a")
	shared.create(t, elsewhere, "foreign", "aws", "a")
	shared.must(t, "", "kubectl", "-n", elsewhere, "create", "secret", "generic", "foreign")
	jane := "jane-" + namespace
	shared.letEdit(t, namespace, jane)
	shared.must(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"usable"},"rules":[
		{"apiGroups":["authentication.gardener.cloud"],"resources":["workloadidentities"],"verbs":["use"],"resourceNames":["usable","google"]}]}`, "kubectl", "-n", namespace, "create", "-f", "-")
	shared.must(t, "", "kubectl", "-n", namespace, "create", "rolebinding", "usable", "--role=usable", "--user="+jane)
	shared.untilAllowed(t, namespace, jane, "create", credentialsBindings, "")
	shared.untilAllowed(t, namespace, jane, "use", workloadIdentities, "usable")
	path, config := bindingsPath(namespace), shared.as(t, jane)

	const secretRef, identityRef = `,"secretRef":{"name":%q,"namespace":%q}`, `,"workloadIdentityRef":{"name":%q,"namespace":%q}`
	long := strings.Repeat("a", 253)
	for name, attack := range map[string]struct {
		references string
		code       int
		message    string
	}{
		"secret":            {fmt.Sprintf(secretRef, "static", namespace), 201, ""},
		"usable":            {fmt.Sprintf(identityRef, "usable", namespace), 201, ""},
		long:                {fmt.Sprintf(secretRef, long, namespace), 201, ""},
		"unusable":          {fmt.Sprintf(identityRef, "other", namespace), 403, `workloadIdentityRef: user \"` + jane + `\" cannot use resource`},
		"foreign-identity":  {fmt.Sprintf(identityRef, "foreign", elsewhere), 403, "workloadIdentityRef"},
		"foreign-secret":    {fmt.Sprintf(secretRef, "foreign", elsewhere), 403, "secretRef"},
		"no-such-namespace": {fmt.Sprintf(identityRef, "usable", "no-such-namespace"), 403, "workloadIdentityRef"},
		"other-provider":    {fmt.Sprintf(identityRef, "google", namespace), 422, "is for gcp, and the binding for aws"},
		"both":              {fmt.Sprintf(identityRef, "usable", namespace) + fmt.Sprintf(secretRef, "static", namespace), 422, "exactly one of the two"},
		"none":              {"", 422, "set workloadIdentityRef, or secretRef"},
		"quota":             {fmt.Sprintf(secretRef, "static", namespace) + `,"quotas":[{"name":"quota-1"}]`, 422, "quotas: Forbidden: are not enforced in namespace "},
		"too-long":          {fmt.Sprintf(secretRef, long+"a", namespace), 422, "must be no more than 253"},
	} {
		for way, got := range map[string]response{
			"create":            do(t, config, "POST", path, "application/json", bindingJSON(name, attack.references)),
			"server-side apply": do(t, config, "PATCH", path+"/"+name+"?fieldManager=e2e&force=true", applyPatch, bindingJSON(name, attack.references)),
		} {
			code := attack.code
			if got.Code == 409 && code == 201 || got.Code == 200 && code == 201 {
				code = got.Code // the other way was first
			}
			if got.Code != code || !strings.Contains(string(got.Body), attack.message) && got.Code == attack.code {
				t.Errorf("%s by %s: %d %s, want %d with %q", name, way, got.Code, got.Body, attack.code, attack.message)
			}
		}
	}

	t.Run("update", func(t *testing.T) {
		admin := shared.config(t)
		for name, references := range map[string]string{"of-foreign-secret": fmt.Sprintf(secretRef, "foreign", elsewhere), "of-foreign-identity": fmt.Sprintf(identityRef, "foreign", elsewhere), "mine": fmt.Sprintf(identityRef, "usable", namespace)} {
			if got := do(t, admin, "POST", path, "application/json", bindingJSON(name, references)); got.Code != 201 {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
		}
		const merge = "application/merge-patch+json"
		for _, attack := range []struct {
			name, patch string
			code        int
			message     string
		}{
			{"of-foreign-secret", `{"secretRef":{"name":"static","namespace":null}}`, 403, "the former secretRef"},
			{"of-foreign-secret", `{"secretRef":null,"workloadIdentityRef":{"name":"usable"}}`, 403, "the former secretRef"},
			{"of-foreign-identity", `{"workloadIdentityRef":{"name":"usable","namespace":null}}`, 403, "the former workloadIdentityRef"},
			{"of-foreign-identity", `{"metadata":{"labels":{"a":"b"}}}`, 200, ""},
			{"mine", `{"workloadIdentityRef":{"namespace":"` + elsewhere + `","name":"foreign"}}`, 403, `workloadIdentityRef: user`},
			{"mine", `{"workloadIdentityRef":null,"secretRef":{"name":"foreign","namespace":"` + elsewhere + `"}}`, 403, `secretRef: user`},
			{"mine", `{"secretRef":{"name":"static"}}`, 422, "exactly one of the two"},
			{"mine", `{"workloadIdentityRef":null}`, 422, "set workloadIdentityRef, or secretRef"},
			{"mine", `{"provider":{"type":"gcp"},"workloadIdentityRef":{"name":"google"}}`, 422, "provider.type"},
			{"mine", `{"workloadIdentityRef":null,"secretRef":{"name":"static"}}`, 200, ""},
			{"mine", `{"workloadIdentityRef":{"name":"usable"},"secretRef":null}`, 200, ""},
		} {
			if got := do(t, config, "PATCH", path+"/"+attack.name, merge, attack.patch); got.Code != attack.code || !strings.Contains(string(got.Body), attack.message) {
				t.Errorf("%s %s: %d %s, want %d with %q", attack.name, attack.patch, got.Code, got.Body, attack.code, attack.message)
			}
		}
	})

	t.Run("view", func(t *testing.T) {
		viewer := "viewer-" + namespace
		shared.bind(t, namespace, "view", user(viewer))
		shared.untilAllowed(t, namespace, viewer, "list", credentialsBindings, "")
		if got := do(t, shared.as(t, viewer), "GET", path, "", ""); got.Code != 200 || !strings.Contains(string(got.Body), `"secret"`) {
			t.Errorf("list: %d %s", got.Code, got.Body)
		}
		if got := do(t, shared.as(t, viewer), "DELETE", path+"/secret", "", ""); got.Code != 403 {
			t.Errorf("delete: %d %s", got.Code, got.Body)
		}
	})
}

func (p plane) tokenBy(t *testing.T, namespace, identity, binding string) response {
	t.Helper()
	return tokenBy(t, p.config(t), namespace, identity, binding)
}

func tokenBy(t *testing.T, config *rest.Config, namespace, identity, binding string) response {
	t.Helper()
	annotations := ""
	if binding != "" {
		annotations = fmt.Sprintf(`,"metadata":{"annotations":{"workloadidentity.authentication.gardener.cloud/binding":%q}}`, binding)
	}
	return do(t, config, "POST", identitiesPath(namespace)+"/"+identity+"/token", "application/json",
		`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest"`+annotations+`}`)
}

// An identity that is deleted while bindings refer to it stays, names them, and gives tokens by them alone. It goes with the last of them, or
// by force.
func TestIdentityStaysWhileReferred(t *testing.T) {
	t.Parallel()
	namespace, elsewhere := shared.namespace(t), shared.namespace(t)
	kubectl := func(args ...string) string {
		t.Helper()
		return shared.must(t, "", "kubectl", append([]string{"-n", namespace}, args...)...)
	}
	refer := func(in, name, identity string) {
		t.Helper()
		shared.must(t, bindingJSON(name, fmt.Sprintf(`,"workloadIdentityRef":{"name":%q,"namespace":%q}`, identity, namespace)), "kubectl", "-n", in, "create", "-f", "-")
	}
	gone := func(identity string) {
		t.Helper()
		eventually(t, func() error {
			if out := kubectl("get", "wi", identity, "--ignore-not-found", "-o", "name"); out != "" {
				return fmt.Errorf("%s is still there", identity)
			}
			return nil
		})
	}
	referred := func(identity string, bindings ...string) {
		t.Helper()
		kubectl("wait", "wi/"+identity, "--for=condition=Referred", "--timeout=5m")
		want := "refers to it: " + strings.Join(bindings, ", and ")
		eventually(t, func() error {
			if out := kubectl("get", "wi", identity, "-o", `jsonpath={.status.conditions[?(@.type=="Referred")].message}`); !strings.HasSuffix(out, want) {
				return fmt.Errorf("the condition has %q, want %q", out, want)
			}
			return nil
		})
	}
	for _, name := range []string{"never", "shared", "forced"} {
		shared.create(t, namespace, name, "aws", "a")
	}
	kubectl("delete", "wi", "never") // as before: no binding has ever referred to it

	refer(namespace, "a", "shared")
	refer(elsewhere, "b", "shared")
	kubectl("delete", "wi", "shared", "--wait=false")
	referred("shared", namespace+"/a", "1 of other namespaces")
	for binding, code := range map[string]int{"": 409, namespace + "/a": 201, elsewhere + "/b": 201, namespace + "/b": 409} {
		if got := shared.tokenBy(t, namespace, "shared", binding); got.Code != code {
			t.Errorf("a token by %q: %d %s, want %d", binding, got.Code, got.Body, code)
		}
	}
	// A user who may create tokens gets none by a binding that they may not use.
	ci := "ci-" + namespace
	shared.bind(t, namespace, "view", user(ci))
	shared.bind(t, namespace, "credence:workloadidentities:token-creator", user(ci))
	for _, binding := range []string{namespace + "/a", elsewhere + "/b", namespace + "/none"} {
		eventually(t, func() error {
			return wantAnswer(tokenBy(t, shared.as(t, ci), namespace, "shared", binding), 403, `cannot use resource \"credentialsbindings\"`)
		})
	}
	shared.bind(t, namespace, "credence:credentialsbindings:user", user(ci))
	shared.untilAllowed(t, namespace, ci, "use", credentialsBindings, "a")
	eventually(t, func() error {
		return wantAnswer(tokenBy(t, shared.as(t, ci), namespace, "shared", namespace+"/a"), 201, "token")
	})
	if _, stderr, code := shared.command(t, bindingJSON("late", fmt.Sprintf(`,"workloadIdentityRef":{"name":"shared","namespace":%q}`, namespace)), "kubectl", "-n", elsewhere, "create", "-f", "-"); code == 0 || !strings.Contains(stderr, "it takes no new references") {
		t.Errorf("a new reference: exit code %d, %s", code, stderr)
	}
	kubectl("label", "cb", "a", "kept=yes") // not a new one
	kubectl("patch", "cb", "a", "--type=merge", "-p", `{"workloadIdentityRef":null,"secretRef":{"name":"static"}}`)
	referred("shared", "1 of other namespaces")
	if got := shared.tokenBy(t, namespace, "shared", namespace+"/a"); got.Code != 409 {
		t.Errorf("a token by a binding that refers to a Secret by now: %d %s", got.Code, got.Body)
	}
	shared.must(t, "", "kubectl", "-n", elsewhere, "delete", "cb", "b")
	gone("shared")

	// By force.
	refer(namespace, "c", "forced")
	kubectl("delete", "wi", "forced", "--wait=false")
	referred("forced", namespace+"/c")
	viewer := "viewer-" + namespace
	shared.bind(t, namespace, "view", user(viewer))
	shared.untilAllowed(t, namespace, viewer, "get", workloadIdentities, "")
	if _, stderr, code := shared.command(t, "", "credence", "identity", "release", "forced", "-n", namespace, "--force", "--as", viewer); code != 1 || !strings.Contains(stderr, "cannot update") {
		t.Errorf("release without the right: exit code %d, %s", code, stderr)
	}
	shared.must(t, "", "credence", "identity", "release", "forced", "-n", namespace, "--force")
	gone("forced")

	// A namespace that is deleted shows why it waits.
	doomed := shared.must(t, "", "kubectl", "create", "namespace", "doomed-"+namespace, "-o", "name")
	doomed = strings.TrimPrefix(strings.TrimSpace(doomed), "namespace/")
	shared.create(t, doomed, "kept", "aws", "a")
	shared.must(t, bindingJSON("d", fmt.Sprintf(`,"workloadIdentityRef":{"name":"kept","namespace":%q}`, doomed)), "kubectl", "-n", elsewhere, "create", "-f", "-")
	shared.must(t, bindingJSON("own", fmt.Sprintf(`,"workloadIdentityRef":{"name":"kept","namespace":%q}`, doomed)), "kubectl", "-n", doomed, "create", "-f", "-")
	shared.must(t, "", "kubectl", "delete", "namespace", doomed, "--wait=false")
	eventually(t, func() error {
		out := shared.must(t, "", "kubectl", "get", "namespace", doomed, "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}`)
		if !strings.Contains(out, v1alpha1.FinalizerBindings) {
			return fmt.Errorf("the namespace shows %q", out)
		}
		return nil
	})
	shared.must(t, "", "kubectl", "-n", elsewhere, "delete", "cb", "d")
	shared.must(t, "", "kubectl", "wait", "--for=delete", "namespace/"+doomed, "--timeout=5m")
}

// A binding stays while a Secret of another namespace names it, and gives its tokens meanwhile. Its namespace can be deleted: the right of the agent
// goes with it.
func TestBindingStaysWhileUsedElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := shared.namespace(t)
	namespace := "bound-" + elsewhere
	shared.must(t, "", "kubectl", "create", "namespace", namespace)
	for _, each := range []string{namespace, elsewhere} {
		shared.enable(t, each)
	}
	shared.letAgent(t, namespace)
	shared.create(t, namespace, "cloud", "aws", "a")
	for _, name := range []string{"used", "own", "forced", "last"} {
		shared.must(t, bindingJSON(name, `,"workloadIdentityRef":{"name":"cloud"}`), "kubectl", "-n", namespace, "create", "-f", "-")
	}
	consumer := func(in, name, binding string) {
		t.Helper()
		secret := tokenSecret(name, namespace, "")
		delete(secret.Annotations, v1alpha1.AnnotationName)
		secret.Annotations[v1alpha1.AnnotationBinding] = binding
		must(t, errOf(shared.client(t).CoreV1().Secrets(in).Create(t.Context(), secret, metav1.CreateOptions{})))
		shared.awaitToken(t, in, name, func(carried) bool { return true })
	}
	consumer(elsewhere, "s", "used")
	consumer(namespace, "s", "own")
	consumer(elsewhere, "t", "forced")
	consumer(elsewhere, "u", "last")
	reported := func(binding, want string) {
		t.Helper()
		eventually(t, func() error {
			if out := shared.must(t, "", "kubectl", "-n", namespace, "get", "cb", binding, "-o", "jsonpath={.status.deliveries[0].secrets} {.metadata.finalizers}"); out != want {
				return fmt.Errorf("%s is reported with %q, want %q", binding, out, want)
			}
			return nil
		})
	}
	reported("used", `1 ["`+v1alpha1.FinalizerConsumers+`"]`)
	reported("own", "1 ")
	reported("forced", `1 ["`+v1alpha1.FinalizerConsumers+`"]`)
	reported("last", `1 ["`+v1alpha1.FinalizerConsumers+`"]`)

	_, warning, code := shared.command(t, "", "kubectl", "-n", namespace, "delete", "cb", "own")
	if code != 0 || !strings.Contains(warning, "is in use in its namespace: 1 Secret:") {
		t.Errorf("a deletion of one that its own namespace uses: exit code %d, %s", code, warning)
	}
	_, warning, _ = shared.command(t, "", "kubectl", "-n", namespace, "delete", "cb", "used", "forced", "--wait=false")
	if command := "credence identity release credentialsbinding/used -n " + namespace + " --force"; !strings.Contains(warning, elsewhere+"/s") || !strings.Contains(warning, command) {
		t.Errorf("a deletion warns: %s", warning)
	}
	for _, binding := range []string{"used", "forced"} {
		shared.must(t, "", "kubectl", "-n", namespace, "wait", "cb/"+binding, "--for=condition=Referred", "--timeout=5m")
	}
	if got := shared.tokenBy(t, namespace, "cloud", namespace+"/used"); got.Code != 201 {
		t.Errorf("a token by a binding that stays: %d %s", got.Code, got.Body)
	}
	shared.must(t, "", "credence", "identity", "release", "cb/forced", "-n", namespace, "--force")
	shared.must(t, "", "kubectl", "-n", namespace, "wait", "cb/forced", "--for=delete", "--timeout=5m")

	shared.must(t, "", "kubectl", "-n", elsewhere, "delete", "secret", "s")
	shared.must(t, "", "kubectl", "-n", namespace, "wait", "cb/used", "--for=delete", "--timeout=5m")
	shared.must(t, "", "kubectl", "delete", "namespace", namespace, "--timeout=5m")
}

// A binding that was applied by the client is switched by a server-side apply of the other reference, and back.
func TestBindingSwitchedByApply(t *testing.T) {
	t.Parallel()
	namespace := shared.namespace(t)
	shared.create(t, namespace, "cloud", "aws", "a")
	const identity, secret = `,"workloadIdentityRef":{"name":"cloud"}`, `,"secretRef":{"name":"static"}`
	apply := func(reference string, flags ...string) {
		t.Helper()
		shared.must(t, bindingJSON("switched", reference), "kubectl", append([]string{"-n", namespace, "apply", "-f", "-"}, flags...)...)
	}
	want := func(want string) {
		t.Helper()
		if out := shared.must(t, "", "kubectl", "-n", namespace, "get", "cb", "switched", "-o", "jsonpath={.secretRef.name},{.workloadIdentityRef.name}"); out != want {
			t.Errorf("the binding refers to %s, want %s", out, want)
		}
	}
	apply(secret)
	want("static,")
	apply(identity, "--server-side", "--force-conflicts")
	want(",cloud")
	apply(secret, "--server-side")
	want("static,")
	both := bindingJSON("switched", secret+identity)
	if _, stderr, code := shared.command(t, both, "kubectl", "-n", namespace, "apply", "--server-side", "-f", "-"); code == 0 || !strings.Contains(stderr, "must not be set beside secretRef") {
		t.Errorf("both are applied: exit code %d, %s", code, stderr)
	}
}
