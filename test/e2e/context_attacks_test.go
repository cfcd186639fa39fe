package e2e_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// dataFor requests the data of a binding for a Shoot.
func dataFor(t *testing.T, as *rest.Config, namespace, binding, spec string) response {
	t.Helper()
	return do(t, as, "POST", bindingsPath(namespace)+"/"+binding+"/data", "application/json", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsDataRequest","spec":`+spec+`}`)
}

// stolen is a seed that was taken over: the credentials of its agent in other hands.
type stolen struct {
	garden        plane
	agent         *rest.Config
	cluster, ours string
	t             *testing.T
	left          func() // what holds once it has left
}

// readsNothing has a joined agent read what it has no right to: context objects, its own Shoot among them, Secrets, what another project has, and other
// clusters.
func readsNothing(t *testing.T, agent *rest.Config, cluster, ours, name, theirs string) {
	t.Helper()
	objects, identities := "/apis/"+landscapeGroup+"/v1beta1", "/apis/"+v1alpha1.GroupName+"/v1alpha1"
	for _, of := range []struct{ all, one string }{
		{objects + "/shoots", ""}, {objects + "/namespaces/" + ours + "/shoots", name}, {objects + "/namespaces/" + theirs + "/shoots", "other"},
		{objects + "/projects", "p-" + theirs}, {objects + "/seeds", cluster}, {objects + "/backupbuckets", "any"},
		{objects + "/backupentries", ""}, {objects + "/namespaces/" + ours + "/backupentries", "any"},
		{identities + "/workloadidentities", ""}, {identitiesPath(theirs), "apple"}, {identities + "/credentialsbindings", ""}, {bindingsPath(theirs), "infra"},
		{"/api/v1/secrets", ""}, {"/api/v1/namespaces/" + ours + "/secrets", "any"}, {"/api/v1/namespaces/" + theirs + "/secrets", "static"},
		{"/api/v1/namespaces/" + identityv1alpha1.WorkloadClusters + "/secrets", cluster}, {workloadClustersPath, cluster},
	} {
		requests := map[string]string{"list": of.all, "watch": of.all + "?watch=true"}
		if of.one != "" {
			requests["get"] = of.all + "/" + of.one
		}
		for verb, path := range requests {
			if err := wantAnswer(do(t, agent, "GET", path, "", ""), 403, "cannot "+verb+" resource"); err != nil {
				t.Errorf("%s %s: %v", verb, path, err)
			}
		}
	}
}

// attackSeed attacks another project with the credentials of a joined agent, by the names of what is there. RBAC gives the agent too much there, and the
// API server narrows it. The other project has a Shoot elsewhere, on another cluster; name is a Shoot of its own.
func attackSeed(t *testing.T, garden plane, agent *rest.Config, cluster, elsewhere, ours, name, uid string) stolen {
	t.Helper()
	theirs := garden.namespace(t)
	garden.awsIdentity(t, theirs, "apple", "apple")
	garden.must(t, bindingJSON("static", `,"secretRef":{"name":"static"}`), "kubectl", "create", "-n", theirs, "-f", "-")
	garden.must(t, bindingJSON("infra", `,"workloadIdentityRef":{"name":"apple"}`), "kubectl", "create", "-n", theirs, "-f", "-")
	project := garden.landscapeObject(t, "Project", "", "p-"+theirs, fmt.Sprintf(`{"namespace":%q}`, theirs))
	other := garden.landscapeObject(t, "Shoot", theirs, "other", fmt.Sprintf(`{"seedName":%q,"credentialsBindingName":"infra"}`, elsewhere))
	readsNothing(t, agent, cluster, ours, name, theirs)
	garden.bind(t, theirs, "credence:agent:identities", rbacv1.Subject{Kind: "ServiceAccount", Name: cluster + "-agent", Namespace: identityv1alpha1.WorkloadClusters})
	own, another := inContext(ours, name, uid), inContext(theirs, "other", other)
	for what, attack := range map[string]struct {
		namespace, identity, spec string
		code                      int
		words                     string
	}{
		"an identity of another project":                     {theirs, "apple", `{}`, 403, "does not list it"},
		"the same, for its own Shoot":                        {theirs, "apple", own, 403, "does not refer to WorkloadIdentity " + theirs + "/apple"},
		"the same, for the Shoot of the project":             {theirs, "apple", another, 403, "it is not on WorkloadCluster " + cluster},
		"the same, for a Shoot that does not exist":          {theirs, "apple", inContext(theirs, "none", other), 403, "it is not on WorkloadCluster " + cluster},
		"its own identity for the Shoot of another project":  {ours, "banana-testing", another, 403, "it is not on WorkloadCluster " + cluster},
		"its own identity for its Shoot in another project":  {ours, "banana-testing", inContext(theirs, name, uid), 403, "it is not on WorkloadCluster " + cluster},
		"its own identity for the other project":             {ours, "banana-testing", strings.ReplaceAll(inContext("", "p-"+theirs, project), `"Shoot"`, `"Project"`), 422, "Unsupported value"},
		"an identity that does not exist, for its own Shoot": {theirs, "none", own, 403, "does not refer to"},
	} {
		if err := wantAnswer(do(t, agent, "POST", tokenPath(attack.namespace, attack.identity), "application/json", tokenRequest(attack.spec)), attack.code, attack.words); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, attack := range map[string]struct {
		binding, spec string
		words         string
	}{
		"no object":                       {"static", `{}`, "does not list the namespace " + theirs},
		"its own Shoot":                   {"static", own, "does not refer to the binding"},
		"the Shoot of another project":    {"infra", another, "is not on WorkloadCluster " + cluster},
		"a Shoot that does not exist":     {"static", inContext(theirs, "none", other), "is not on WorkloadCluster " + cluster},
		"a binding that does not exist":   {"none", own, "does not refer to the binding"},
		"a kind that no ContextKind has":  {"static", strings.ReplaceAll(own, `"Shoot"`, `"Project"`), "no ContextKind has objects"},
		"a service account of its own":    {"static", `{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","namespace":"default","name":"default","uid":"u"}}`, "no ContextKind has objects"},
		"an object of the cluster itself": {"static", strings.ReplaceAll(own, `"namespace":"`+ours+`",`, ""), "is not on WorkloadCluster " + cluster},
	} {
		if err := wantAnswer(dataFor(t, agent, theirs, attack.binding, attack.spec), 403, attack.words); err != nil {
			t.Errorf("data for %s: %v", what, err)
		}
	}
	garden.must(t, "", "kubectl", "delete", "projects."+landscapeGroup, "p-"+theirs)
	return stolen{garden: garden, agent: agent, cluster: cluster, ours: ours, t: t}
}

// leave shows that a cluster gets nothing by its objects once its WorkloadCluster is deleted, nor once it has left.
func (s stolen) leave() {
	s.t.Helper()
	late := inContext(s.ours, "late", s.garden.landscapeObject(s.t, "Shoot", s.ours, "late", fmt.Sprintf(`{"seedName":%q,"credentialsBindingName":"infra"}`, s.cluster)))
	want := func(code int, words string) {
		s.t.Helper()
		eventually(s.t, func() error {
			return wantAnswer(do(s.t, s.agent, "POST", tokenPath(s.ours, "banana-testing"), "application/json", tokenRequest(late)), code, words)
		})
	}
	want(201, "token")
	delivered := func(code int, words string) {
		s.t.Helper()
		if err := wantAnswer(do(s.t, s.agent, "GET", deliveriesPath, "", ""), code, words); err != nil {
			s.t.Errorf("what is delivered: %v", err)
		}
	}
	delivered(200, "ContextDeliveryList")
	s.garden.must(s.t, "", "kubectl", "delete", "workloadcluster", s.cluster)
	want(403, "is in no WorkloadCluster")
	delivered(403, "is in no WorkloadCluster")
	if err := wantAnswer(dataFor(s.t, s.agent, s.ours, "infra", late), 403, "no WorkloadCluster lists"); err != nil {
		s.t.Errorf("data without a WorkloadCluster: %v", err)
	}
	s.garden.must(s.t, "", "credence", "cluster", "leave", s.cluster)
	want(401, "")
	delivered(401, "")
	if err := wantAnswer(dataFor(s.t, s.agent, s.ours, "infra", late), 401, ""); err != nil {
		s.t.Errorf("data after it has left: %v", err)
	}
	s.left()
}

// followStaticKey flips the binding of a Shoot from an identity to a static key and back: the Secret stays, has one of both at a time, and the key only with the
// consent of its Secret. before is the token that the Secret has.
func followStaticKey(t *testing.T, garden, seed plane, agent *rest.Config, ours, there, foo, before string) {
	t.Helper()
	vault, value := garden.namespace(t), "s3cret-of-"+ours
	garden.must(t, "", "kubectl", "-n", vault, "create", "secret", "generic", "static", "--from-literal=accessKeyID=AKIA", "--from-literal=secretAccessKey="+value)
	secrets := seed.client(t).CoreV1().Secrets(there)
	first := need(secrets.Get(t.Context(), "cloudprovider", metav1.GetOptions{}))(t)
	flip := func(patch string) {
		t.Helper()
		garden.must(t, "", "kubectl", "-n", ours, "patch", "cb", "infra", "--type=merge", "-p", patch)
	}
	// keys waits until the Secret, which is the one that was there, has these keys alone.
	keys := func(what string, want ...string) {
		t.Helper()
		eventually(t, func() error {
			secret, err := secrets.Get(t.Context(), "cloudprovider", metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) || err == nil && secret.UID != first.UID:
				return fatal{fmt.Errorf("%s: the Secret was deleted", what)}
			case err != nil:
				return err
			case len(secret.Data["token"])+len(secret.Data["config"]) > 0 && len(secret.Data["secretAccessKey"]) > 0:
				return fatal{fmt.Errorf("%s: the Secret has a token and a static key", what)}
			case len(secret.Data) != len(want):
				return fmt.Errorf("%s: %d keys, want %q", what, len(secret.Data), want)
			}
			for _, key := range want {
				if len(secret.Data[key]) == 0 {
					return fmt.Errorf("%s: no %s", what, key)
				}
			}
			if got, ok := secret.Data["secretAccessKey"]; ok && string(got) != value {
				return fatal{fmt.Errorf("%s: another key", what)}
			}
			return nil
		})
	}
	static, dynamic := []string{"accessKeyID", "secretAccessKey"}, []string{"token", "config", "credentialsFile"}
	flip(`{"workloadIdentityRef":null,"secretRef":{"name":"static","namespace":"` + vault + `"}}`)
	seed.awaitWarning(t, there, "Secret/cloudprovider DataRefused", "the API server may not read Secret static")
	if _, carried := seed.awaitToken(t, there, "cloudprovider", nil); carried.ID != before {
		t.Error("without consent the Secret has another token")
	}
	object := []string{"context", "shoots." + landscapeGroup + "/foo", "-n", ours}
	garden.explained(t, 1, []string{"refused", "the API server may not read Secret static"}, object...)
	garden.must(t, "", "kubectl", "create", "rolebinding", "credence-credentials", "-n", vault, "--clusterrole=credence:apiserver:credentials", "--serviceaccount=credence-system:credence-apiserver")
	consent := func(list string) {
		t.Helper()
		garden.must(t, "", "kubectl", "label", "secret", "static", "-n", vault, "--overwrite", v1alpha1.LabelCopied+"="+v1alpha1.CopiedEnabled)
		garden.must(t, "", "kubectl", "annotate", "secret", "static", "-n", vault, "--overwrite", v1alpha1.AnnotationCopiedFor+"="+list)
	}
	consent(ours)
	keys("copied", static...)
	garden.explained(t, 0, []string{": admitted\n", "of Secret " + vault + "/static, in place of a token"}, object...)

	own := inContext(ours, "foo", foo)
	given := dataFor(t, agent, ours, "infra", own)
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	expect(t, wantAnswer(given, 201, encoded))
	if event := garden.audited(t, given.Header.Get("Audit-Id")); !strings.Contains(event.Annotations["data.authentication.gardener.cloud/context"], foo) {
		t.Errorf("annotations of the audit event: %v", event.Annotations)
	}
	seed.kill(t, "agent")
	flip(`{"secretRef":null,"workloadIdentityRef":{"name":"banana-testing"}}`)
	keys("by the identity, with the agent killed", dynamic...)
	flip(`{"workloadIdentityRef":null,"secretRef":{"name":"static","namespace":"` + vault + `"}}`)
	keys("and back", static...)
	flip(`{"secretRef":null,"workloadIdentityRef":{"name":"banana-testing"}}`)
	keys("by the identity", dynamic...)
	noLogHas(t, garden, seed, value, encoded)
}
