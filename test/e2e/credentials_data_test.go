package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// TestWhoMayConsent is the attack on every way to have the data of a Secret copied without the right to get it.
func TestWhoMayConsent(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	mallory := "mallory-" + namespace
	shared.role(t, namespace, "blind", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"hers"}},
	}, mallory)
	shared.untilAllowed(t, namespace, mallory, "patch", "secrets", "static")
	admins, hers := shared.client(t).CoreV1().Secrets(namespace), shared.clientAs(t, mallory).CoreV1().Secrets(namespace)
	secret := func(name, label, list string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}, Data: map[string][]byte{"key": []byte("s3cret")}}
		if label != "" {
			s.Labels[v1alpha1.LabelCopied] = label
		}
		if list != "" {
			s.Annotations[v1alpha1.AnnotationCopiedFor] = list
		}
		return s
	}
	for name, given := range map[string]*corev1.Secret{
		"static": secret("static", "", ""), "hers": secret("hers", "", ""), "listed": secret("listed", "", "fruit"), "labeled": secret("labeled", "enabled", ""), "consents": secret("consents", "enabled", "fruit,trees"),
	} {
		_, err := admins.Create(t.Context(), given, metav1.CreateOptions{})
		allowed(t, "the admin's "+name, err)
	}
	const words = "only a user who may get the Secret consents to that"
	consent := func(label, list string) string {
		return fmt.Sprintf(`{"metadata":{"labels":{%q:%s},"annotations":{%q:%s}}}`, v1alpha1.LabelCopied, label, v1alpha1.AnnotationCopiedFor, list)
	}
	for what, attack := range map[string]struct{ name, patch string }{
		"both":                       {"static", consent(`"enabled"`, `"fruit"`)},
		"the label of a list":        {"listed", consent(`"enabled"`, `"fruit"`)},
		"the list of a label":        {"labeled", consent(`"enabled"`, `"fruit"`)},
		"a wider list":               {"consents", consent(`"enabled"`, `"fruit,trees,plants"`)},
		"another list":               {"consents", consent(`"enabled"`, `" plants "`)},
		"a wider list, with blanks":  {"consents", consent(`"enabled"`, `"fruit, , plants\n"`)},
		"a list that is made of one": {"consents", consent(`"enabled"`, `"fru,it"`)},
	} {
		refused(t, what, patch(t, hers, attack.name, attack.patch), words)
	}
	for _, made := range []*corev1.Secret{secret("new", "enabled", "fruit"), {ObjectMeta: metav1.ObjectMeta{GenerateName: "hers", Labels: secret("x", "enabled", "").Labels, Annotations: secret("x", "", "fruit").Annotations}}} {
		_, err := hers.Create(t.Context(), made, metav1.CreateOptions{})
		refused(t, "a new Secret", err, words)
	}
	// A list is narrowed, and a consent taken back, without the right.
	for what, step := range map[string]string{
		"one namespace less": consent(`"enabled"`, `"fruit"`), "no label": consent("null", `"fruit"`), "no list": consent("null", "null"),
	} {
		_, err := hers.Patch(t.Context(), "consents", types.MergePatchType, []byte(step), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		allowed(t, what, err)
	}
	allowed(t, "other data", patch(t, hers, "consents", `{"data":{"key":"eA=="}}`))
	allowed(t, "the consent of a Secret that she may get", patch(t, hers, "hers", consent(`"enabled"`, `"fruit"`)))
}

// TestCopiedKeysAreTheAgents attacks the record of what was copied, and the ways to keep a copy for ever. The agent of the plane does not have the namespace.
func TestCopiedKeysAreTheAgents(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	mallory := "mallory-" + namespace
	hers := shared.admin(t, namespace, mallory).CoreV1().Secrets(namespace)
	shared.bind(t, namespace, "credence:credentialsbindings:user", user(mallory))
	shared.bind(t, namespace, "edit", rbacv1.Subject{Kind: "ServiceAccount", Name: "credence-agent", Namespace: "credence-system"})
	agents := shared.clientAs(t, agentUser, agentGroup).CoreV1().Secrets(namespace)
	consumer := func(name string) *corev1.Secret {
		made := tokenSecret(name, namespace, "")
		delete(made.Annotations, v1alpha1.AnnotationName)
		made.Annotations[v1alpha1.AnnotationBinding] = "infra"
		made.Data = map[string][]byte{"mine": []byte("x")}
		return made
	}
	eventually(t, func() error {
		_, err := hers.Create(t.Context(), consumer("s"), metav1.CreateOptions{})
		return err
	})
	record := namespace + "/infra:id,key"
	for _, value := range []string{record, namespace + "/infra:mine", "x"} {
		refused(t, "the record "+value, patch(t, hers, "s", string(annotate(v1alpha1.AnnotationCopiedKeys, value))), "written by the agent")
	}
	named := `{"metadata":{"annotations":{"` + v1alpha1.AnnotationName + `":"banana"}}}`
	refused(t, "an identity beside the binding", patch(t, hers, "s", named), "must not be set beside")
	alone := `{"metadata":{"annotations":{"` + v1alpha1.AnnotationBinding + `":null,"` + v1alpha1.AnnotationName + `":"banana"}}}`
	refused(t, "an identity, with the right to use bindings", patch(t, hers, "s", alone), "may not have tokens of WorkloadIdentity")
	forged := consumer("forged")
	forged.Annotations[v1alpha1.AnnotationCopiedKeys] = record
	_, err := hers.Create(t.Context(), forged, metav1.CreateOptions{})
	refused(t, "a new Secret with a record", err, "written by the agent")

	_, err = agents.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationCopiedKeys+`":"`+record+`"}},"data":{"id":"eA==","key":"eA=="}}`), metav1.PatchOptions{})
	allowed(t, "the agent's copy", err)
	const noRecord = `"annotations":{"` + v1alpha1.AnnotationCopiedKeys + `":null}`
	for what, attack := range map[string]struct{ patch, words string }{
		"no label":               {`{"metadata":{"labels":null}}`, "keep its label"},
		"another label":          {`{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":"x"}}}`, "keep its label"},
		"no record":              {`{"metadata":{` + noRecord + `}}`, "keep its label, that annotation"},
		"a shorter record":       {`{"metadata":{"annotations":{"` + v1alpha1.AnnotationCopiedKeys + `":"` + namespace + `/infra:id"}}}`, "written by the agent"},
		"immutable":              {`{"immutable":true}`, "immutable: false"},
		"no label, half of it":   {`{"metadata":{"labels":null},"data":{"id":null}}`, "remove the keys key"},
		"immutable, half of it":  {`{"immutable":true,"data":{"id":null}}`, "remove the keys key"},
		"a key of her own":       {`{"data":{"mine":"eQ=="}}`, ""},
		"other values":           {`{"data":{"id":"eQ=="}}`, ""},
		"no label and no data":   {`{"metadata":{"labels":null},"data":{"id":null,"key":null}}`, ""},
		"no record and no data":  {`{"metadata":{` + noRecord + `},"data":{"id":null,"key":null}}`, ""},
		"another binding's name": {string(annotate(v1alpha1.AnnotationBinding, "other")), ""},
	} {
		_, err := hers.Patch(t.Context(), "s", types.MergePatchType, []byte(attack.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if attack.words == "" {
			allowed(t, what, err)
		} else {
			refused(t, what, err, attack.words)
		}
	}
}

func dataOf(t *testing.T, as *rest.Config, namespace, binding string) response {
	t.Helper()
	return do(t, as, "POST", bindingsPath(namespace)+"/"+binding+"/data", "application/json", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsDataRequest"}`)
}

// staticCredentials has a consumer in the other cluster follow its binding from a static key to an identity and back. The data is copied with the consent of the
// Secret alone, only to a cluster that lists the namespace of the binding, and goes with the reference, the consent, and the binding.
func staticCredentials(t *testing.T, garden, seed plane, agent, reader rbacv1.Subject, agentConfig, readerConfig string) {
	west, westConfig := garden.visitor(t, "west-agent")
	ours, theirs, vault := garden.namespace(t), garden.namespace(t), garden.namespace(t)
	nameOf := func(s rbacv1.Subject) string { return "system:serviceaccount:" + s.Namespace + ":" + s.Name }
	garden.joinCluster(t, "east-"+ours, []string{nameOf(agent)}, []string{ours})
	garden.joinCluster(t, "west-"+ours, []string{nameOf(west)}, []string{theirs})
	garden.bind(t, ours, "credence:agent:identities", agent)
	garden.bind(t, ours, "credence:identity-reader", reader)
	for _, namespace := range []string{ours, theirs} { // in ours it is too much, and the WorkloadCluster narrows it
		garden.bind(t, namespace, "credence:agent:identities", west)
	}
	garden.awsIdentity(t, ours, "banana", "dev")
	value := "s3cret-of-" + vault
	for _, name := range []string{"static", "plain"} {
		garden.must(t, "", "kubectl", "-n", vault, "create", "secret", "generic", name, "--from-literal=accessKeyID=AKIA", "--from-literal=secretAccessKey="+value)
	}
	for namespace, bindings := range map[string]map[string]string{ours: {"infra": "static", "plain": "plain", "none": "none"}, theirs: {"infra": "static"}} {
		for name, secret := range bindings {
			garden.must(t, bindingJSON(name, fmt.Sprintf(`,"secretRef":{"name":%q,"namespace":%q}`, secret, vault)), "kubectl", "-n", namespace, "create", "-f", "-")
		}
	}
	there := seed.namespace(t)
	seed.enable(t, there)
	secrets := seed.client(t).CoreV1().Secrets(there)
	consumer := func(name, binding string) {
		t.Helper()
		secret := tokenSecret(name, ours, "")
		delete(secret.Annotations, v1alpha1.AnnotationName)
		secret.Annotations[v1alpha1.AnnotationBinding], secret.Labels[v1alpha1.LabelProvider] = binding, "aws"
		secret.Data = map[string][]byte{"own": []byte("kept")}
		must(t, errOf(secrets.Create(t.Context(), secret, metav1.CreateOptions{})))
	}
	consumer("first", "infra")
	consumer("second", "infra")
	await := func(what string, holds func(*corev1.Secret) error) {
		t.Helper()
		began := time.Now()
		for _, name := range []string{"first", "second"} {
			eventually(t, func() error {
				secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if string(secret.Data["own"]) != "kept" {
					return fatal{fmt.Errorf("%s lost its own key", name)}
				}
				return holds(secret)
			})
		}
		t.Logf("%s: after %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	lacks := func(secret *corev1.Secret) error {
		for _, key := range []string{"accessKeyID", "secretAccessKey"} {
			if _, there := secret.Data[key]; there {
				return fmt.Errorf("%s still has %s", secret.Name, key)
			}
		}
		return nil
	}
	static := func(secret *corev1.Secret) error {
		if string(secret.Data["secretAccessKey"]) != value || string(secret.Data["accessKeyID"]) != "AKIA" || len(secret.Data) != 3 {
			return fmt.Errorf("%s has %d keys, and not the static credentials alone", secret.Name, len(secret.Data))
		}
		return nil
	}
	dynamic := func(secret *corev1.Secret) error {
		if len(secret.Data["token"]) == 0 || len(secret.Data["credentialsFile"]) == 0 {
			return fmt.Errorf("%s has no token yet", secret.Name)
		}
		return lacks(secret)
	}

	// Each refusal has the command that ends it.
	seed.awaitWarning(t, there, "Secret/first DataRefused", "the API server may not read Secret static")
	garden.must(t, "", "kubectl", "create", "rolebinding", "credence-credentials", "-n", vault, "--clusterrole=credence:apiserver:credentials", "--serviceaccount=credence-system:credence-apiserver")
	seed.awaitWarning(t, there, "Secret/first DataRefused", "does not exist, or does not consent to bindings of the namespace "+ours)
	consent := func(list string) {
		t.Helper()
		garden.must(t, "", "kubectl", "label", "secret", "static", "-n", vault, "--overwrite", v1alpha1.LabelCopied+"="+v1alpha1.CopiedEnabled)
		garden.must(t, "", "kubectl", "annotate", "secret", "static", "-n", vault, "--overwrite", v1alpha1.AnnotationCopiedFor+"="+list)
	}
	consent(ours)
	await("copied", static)

	t.Log("attacks")
	east := fromFile(t, agentConfig)
	got := dataOf(t, east, ours, "infra")
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	expect(t, wantAnswer(got, 201, encoded))
	if cache := got.Header.Values("Cache-Control"); !slices.Contains(cache, "no-store") {
		t.Errorf("Cache-Control: %s", cache)
	}
	event := shared.audited(t, got.Header.Get("Audit-Id"))
	if source := event.Annotations["data.authentication.gardener.cloud/secret"]; !strings.HasPrefix(source, vault+"/static/") || !strings.HasPrefix(event.Annotations["data.authentication.gardener.cloud/cluster"], "east-"+ours+"/") {
		t.Errorf("annotations of the audit event: %v", event.Annotations)
	}
	for what, attack := range map[string]struct {
		as                 *rest.Config
		namespace, binding string
		code               int
		words              string
	}{
		"another cluster":                       {fromFile(t, westConfig), ours, "infra", 403, "does not list the namespace " + ours},
		"a binding of another namespace":        {fromFile(t, westConfig), theirs, "infra", 403, "does not consent to bindings of the namespace " + theirs},
		"an admin":                              {garden.config(t), ours, "infra", 403, "data is given to agents alone"},
		"the agent of the cluster itself":       {garden.as(t, agentUser, agentGroup, "system:serviceaccounts:credence-system"), ours, "infra", 403, ""},
		"the webhook":                           {fromFile(t, readerConfig), ours, "infra", 403, "cannot create resource"},
		"a Secret without consent":              {east, ours, "plain", 403, "does not exist, or does not consent"},
		"a Secret that does not exist":          {east, ours, "none", 403, "does not exist, or does not consent"},
		"a binding that does not exist":         {east, ours, "gone", 404, ""},
		"a namespace that is not the cluster's": {east, theirs, "infra", 403, "cannot create resource"},
	} {
		if err := wantAnswer(dataOf(t, attack.as, attack.namespace, attack.binding), attack.code, attack.words); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := do(t, east, "GET", bindingsPath(ours)+"/infra/data", "", ""); got.Code != 403 && got.Code != 405 {
		t.Errorf("GET: %d", got.Code)
	}

	flip := func(patch string) {
		t.Helper()
		garden.must(t, "", "kubectl", "-n", ours, "patch", "cb", "infra", "--type=merge", "-p", patch)
	}
	flip(`{"secretRef":null,"workloadIdentityRef":{"name":"banana"}}`)
	await("the data is gone after a flip", lacks)
	await("and a token is there", dynamic)
	flip(`{"workloadIdentityRef":null,"secretRef":{"name":"static","namespace":"` + vault + `"}}`)
	await("flipped back", static)
	flip(`{"secretRef":{"name":"plain"}}`)
	await("the data is gone after a flip to a Secret without consent", lacks)
	flip(`{"secretRef":{"name":"static"}}`)
	await("and is back", static)

	garden.must(t, "", "kubectl", "label", "secret", "static", "-n", vault, v1alpha1.LabelCopied+"-")
	await("the data is gone without the label", lacks)
	consent(theirs + ", " + ours)
	await("and is back", static)
	// The Secret in the other cluster holds the binding, until a user ends that.
	garden.must(t, "", "kubectl", "-n", ours, "delete", "cb", "infra", "--wait=false")
	garden.must(t, "", "kubectl", "-n", ours, "wait", "cb/infra", "--for=condition=Referred", "--timeout=5m")
	garden.must(t, "", "credence", "identity", "release", "credentialsbinding/infra", "-n", ours, "--force")
	await("the data is gone with the binding", lacks)

	noLogHas(t, garden, seed, value, encoded)
}

// noLogHas reads all logs and audit logs of an identity cluster and a workload cluster: none has any of the secrets.
func noLogHas(t *testing.T, garden, seed plane, secrets ...string) {
	t.Helper()
	for _, dir := range []string{filepath.Join(garden.Dir, "logs"), filepath.Join(seed.Dir, "logs"), filepath.Join(garden.Dir, "devcluster", "audit.log"), filepath.Join(garden.Dir, "apiserver-audit.log"), filepath.Join(seed.Dir, "devcluster", "audit.log")} {
		expect(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if slices.ContainsFunc(secrets, func(s string) bool { return bytes.Contains(content, []byte(s)) }) {
				t.Errorf("%s has the data", path)
			}
			return err
		}))
	}
}
