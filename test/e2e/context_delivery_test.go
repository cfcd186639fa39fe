package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// deliverTo lets Secrets for context objects be made in a namespace.
func (p plane) deliverTo(t *testing.T, namespace, value string) {
	t.Helper()
	to := "null"
	if value != "" {
		to = fmt.Sprintf("%q", value)
	}
	must(t, patch(t, p.client(t).CoreV1().Namespaces(), namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, v1alpha1.LabelNamespaceContexts, to)))
}

// deliveredSecret is a Secret that the agent makes for a Shoot.
func deliveredSecret(name string) *corev1.Secret {
	secret := tokenSecret(name, "garden-local", "banana")
	secret.Annotations[v1alpha1.AnnotationContextDelivery] = "d1"
	secret.Annotations[v1alpha1.AnnotationContextObject] = `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","name":"foo","namespace":"garden-local","uid":"u"}`
	secret.Data = map[string][]byte{"config": []byte("{}\n")}
	return secret
}

// TestDeliveredSecretsAreTheAgents attacks Secrets for context objects: as a user, who would have the agent fill or delete one, and as an agent that
// was taken over.
func TestDeliveredSecretsAreTheAgents(t *testing.T) {
	inTurn(t)
	namespace, plain := shared.namespace(t), shared.namespace(t)
	shared.deliverTo(t, namespace, v1alpha1.NamespaceEnabled)
	shared.enable(t, plain)
	root, agent := shared.client(t), shared.clientAs(t, agentUser, agentGroup)
	mallory := shared.admin(t, namespace, "mallory-"+namespace)
	shared.letUse(t, "default", "mallory-"+namespace)
	for _, where := range []string{namespace, plain} {
		eventually(t, func() error { return list(t, agent, where) })
	}
	refused(t, "a label with another value", patch(t, root.CoreV1().Namespaces(), plain, `{"metadata":{"labels":{"`+v1alpha1.LabelNamespaceContexts+`":"yes"}}}`))
	shared.awsIdentity(t, "default", "d-"+namespace, "dev")
	hers, his := mallory.CoreV1().Secrets(namespace), agent.CoreV1().Secrets(namespace)

	// Such a namespace gives the agent its Secrets, and the webhook no pods.
	binder := shared.clientAs(t, binderUser, agentGroup).RbacV1().RoleBindings(namespace)
	_, err := binder.Create(t.Context(), rights.OfWebhook(namespace), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	refused(t, "the webhook's right to pods", err, "the binder may bind")

	// The agent, taken over.
	for what, change := range map[string]func(*corev1.Secret){
		"a reserved name": func(s *corev1.Secret) { s.Name = "credence-token-web-x" },
		"no label":        func(s *corev1.Secret) { s.Labels = nil },
		"no mark":         func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationContextDelivery) },
		"no context":      func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationContextObject) },
		"a service account as context": func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = `{"apiVersion":"v1","kind":"ServiceAccount","name":"web","namespace":"` + namespace + `","uid":"u"}`
		},
		"one in disguise": func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = `{"apiVersion":"v1","kind":"\u0053erviceAccount","name":"web","namespace":"` + namespace + `","uid":"u"}`
		},
		"on behalf of a user": func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationRequester] = "admin" },
		"an owner": func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"}}
		},
		"a finalizer":  func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} },
		"immutable":    func(s *corev1.Secret) { s.Immutable = new(true) },
		"another type": func(s *corev1.Secret) { s.Type = "example.com/x" },
		"a token of an account": func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeServiceAccountToken
			s.Annotations["kubernetes.io/service-account.name"] = "default"
		},
	} {
		secret := deliveredSecret("cloudprovider")
		change(secret)
		_, err := his.Create(t.Context(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		refused(t, "a delivered Secret, "+what, err, "the agent may")
	}
	_, err = agent.CoreV1().Secrets(plain).Create(t.Context(), deliveredSecret("cloudprovider"), metav1.CreateOptions{})
	refused(t, "a delivered Secret in a namespace without the label", err, v1alpha1.LabelNamespaceContexts+"=enabled")
	_, err = his.Create(t.Context(), deliveredSecret("cloudprovider"), metav1.CreateOptions{})
	allowed(t, "a delivered Secret", err)
	patchAllowed(t, his, "cloudprovider", map[string]string{"another identity": string(annotate(v1alpha1.AnnotationName, "cherry")), "a token": `{"data":{"token":"eA=="}}`})
	patchRefused(t, his, "cloudprovider", map[string]string{
		"no mark any more": `{"metadata":{"annotations":{"` + v1alpha1.AnnotationContextDelivery + `":null}}}`,
		"a user":           string(annotate(v1alpha1.AnnotationRequester, "admin")),
		"no context":       `{"metadata":{"annotations":{"` + v1alpha1.AnnotationContextObject + `":null}}}`,
		"an account":       string(annotate(v1alpha1.AnnotationContextObject, `{"apiVersion":"v1","kind":"ServiceAccount","name":"web","namespace":"`+namespace+`","uid":"u"}`)),
		"a finalizer":      `{"metadata":{"finalizers":["e2e.example/x"]}}`,
	}, "the agent may")
	mine := tokenSecret("mine", "default", "d-"+namespace)
	eventually(t, func() error {
		_, err := hers.Create(t.Context(), mine.DeepCopy(), metav1.CreateOptions{})
		return err
	})
	mark := string(annotate(v1alpha1.AnnotationContextDelivery, "d1"))
	refused(t, "taking a Secret over", patch(t, his, "mine", mark), "may not take a Secret over")
	refused(t, "deleting it", his.Delete(t.Context(), "mine", metav1.DeleteOptions{}), "no others")

	// A user.
	const agents = "the agent"
	forge := func(secret *corev1.Secret, annotation string) error {
		forged := secret.DeepCopy()
		forged.Name, forged.Annotations[annotation] = "forged", deliveredSecret("x").Annotations[annotation]
		_, err := hers.Create(t.Context(), forged, metav1.CreateOptions{})
		return err
	}
	refused(t, "a mark on a new Secret", forge(mine, v1alpha1.AnnotationContextDelivery), agents, v1alpha1.AnnotationContextDelivery)
	refused(t, "the context of a Shoot", forge(mine, v1alpha1.AnnotationContextObject), "only the agent")
	bare := deliveredSecret("bare")
	bare.Labels = nil
	refused(t, "a mark on a Secret without the label", forge(bare, v1alpha1.AnnotationContextDelivery), agents)
	refused(t, "a mark on a Secret of hers", patch(t, hers, "mine", mark), agents)
	patchRefused(t, hers, "cloudprovider", map[string]string{ // mostly by two policies, of which either is named
		"another identity":  string(annotate(v1alpha1.AnnotationName, "d-"+namespace)),
		"another mark":      string(annotate(v1alpha1.AnnotationContextDelivery, "d2")),
		"no mark":           `{"metadata":{"annotations":{"` + v1alpha1.AnnotationContextDelivery + `":null}}}`,
		"no label":          `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":null}}}`,
		"another provider":  `{"metadata":{"labels":{"` + v1alpha1.LabelProvider + `":"aws"}}}`,
		"another renewal":   string(annotate(v1alpha1.AnnotationContextRenewal, "r")),
		"another token":     `{"data":{"token":"eQ=="}}`,
		"no token":          `{"data":{"token":null}}`,
		"another config":    `{"data":{"config":"eDogMQo="}}`,
		"an owner":          `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
		"immutability":      `{"immutable":true}`,
		"a later renewal":   string(annotate(v1alpha1.AnnotationRenewTimestamp, "2036-01-01T00:00:00Z")),
		"another requester": string(annotate(v1alpha1.AnnotationRequester, "me")),
	})
	patchAllowed(t, hers, "cloudprovider", map[string]string{
		"a note":                    string(annotate("note", "x")),
		"a request for a new token": string(annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken)),
		"a key of other software":   `{"data":{"theirs":"eQ=="}}`,
	})
	shared.deliverTo(t, namespace, "")
	eventually(t, func() error {
		if _, err := his.Patch(t.Context(), "cloudprovider", types.MergePatchType, []byte(`{"data":{"token":"eg=="}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return nil
		}
		return errors.New("a token was written in a namespace without the label")
	})
	patchRefused(t, his, "cloudprovider", map[string]string{
		"another config": `{"data":{"config":"eDogMQo="}}`, "a key for another": `{"data":{"token":null,"key":"eA=="}}`, "string data": `{"stringData":{"key":"x"}}`,
	}, "take data out of them in others")
	allowed(t, "taking data out without the label", patch(t, his, "cloudprovider", `{"data":{"token":null}}`))
	allowed(t, "deletion by the agent without the label", his.Delete(t.Context(), "cloudprovider", metav1.DeleteOptions{}))
}

// A crowd is of this many Shoots, each of which has this many extensions with a Secret: five hundred.
const crowdShoots, crowdExtensions = 20, 25

// crowd are Shoots beside the Shoot foo.
type crowd struct {
	garden, seed plane
	ours         string
}

func (c crowd) name(i int) string { return fmt.Sprintf("crowd-%d", i) }

// there is the namespace of one of them in the seed.
func (c crowd) there(i int) string { return "shoot--" + c.ours + "--" + c.name(i) }

// extensions all refer to an identity.
func (c crowd) extensions(identity string) string {
	var list []string
	for i := range crowdExtensions {
		list = append(list, fmt.Sprintf(`{"type":"e-%d","workloadIdentity":{"name":%q}}`, i, identity))
	}
	return `"extensions":[` + strings.Join(list, ",") + "]"
}

// add makes them on a cluster, where they refer to an identity.
func (c crowd) add(t *testing.T, cluster, identity string) {
	t.Helper()
	for i := range crowdShoots {
		c.seed.namespaceOf(t, c.there(i))
		c.garden.landscapeObject(t, "Shoot", c.ours, c.name(i), fmt.Sprintf(`{"seedName":%q,%s}`, cluster, c.extensions(identity)))
		c.garden.patchShoot(t, c.ours, c.name(i), fmt.Sprintf(`{"status":{"technicalID":%q}}`, c.there(i)))
	}
}

// refer has some of them refer to another identity.
func (c crowd) refer(t *testing.T, from, to int, identity string) {
	t.Helper()
	for i := from; i < to; i++ {
		c.garden.patchShoot(t, c.ours, c.name(i), "{\"spec\":{"+c.extensions(identity)+"}}")
	}
}

// remove deletes them.
func (c crowd) remove(t *testing.T) {
	t.Helper()
	for i := range crowdShoots {
		c.garden.must(t, "", "kubectl", "delete", "--wait=false", "-n", c.ours, "shoots."+landscapeGroup, c.name(i))
	}
}

// want waits until each of their references has a Secret with a token of an identity; without an identity, until these Secrets are gone.
func (c crowd) want(t *testing.T, identity string) {
	t.Helper()
	begun := time.Now()
	eventually(t, func() error {
		list, err := c.seed.client(t).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor})
		if err != nil {
			return err
		}
		have := 0
		for _, secret := range list.Items {
			if !strings.HasPrefix(secret.Namespace, "shoot--"+c.ours+"--crowd-") {
				continue
			}
			if have++; len(secret.Data["token"]) == 0 {
				return fmt.Errorf("Secret %s/%s has no token", secret.Namespace, secret.Name)
			}
			_, carried := claims(t, string(secret.Data["token"]))
			if sub := carried["sub"].(string); !strings.Contains(sub, ":"+c.ours+":"+identity+":") {
				return fmt.Errorf("Secret %s/%s has a token of %s, want %s", secret.Namespace, secret.Name, sub, identity)
			}
		}
		if want := map[bool]int{true: crowdShoots * crowdExtensions}[identity != ""]; have != want {
			return fmt.Errorf("%d Secrets, want %d", have, want)
		}
		return nil
	})
	t.Logf("all references have tokens of %q after %s", identity, time.Since(begun).Round(time.Millisecond))
}

// namespaceOf makes a namespace of a seed in which Secrets for context objects are made.
func (p plane) namespaceOf(t *testing.T, name string) {
	t.Helper()
	p.must(t, "", "kubectl", "create", "namespace", name)
	p.deliverTo(t, name, v1alpha1.NamespaceEnabled)
}

// patchShoot changes a Shoot.
func (p plane) patchShoot(t *testing.T, namespace, name, patch string) {
	t.Helper()
	if got := do(t, p.config(t), "PATCH", "/apis/"+landscapeGroup+"/v1beta1/namespaces/"+namespace+"/shoots/"+name, mergePatch, patch); got.Code != 200 {
		t.Fatalf("patch: %d %s", got.Code, got.Body)
	}
}

// joinSeed has a plane of its own join as a cluster that has identities by its objects. The agent's credentials are returned, too. No namespace is listed:
// its agent reads the identities that its objects use by a RoleBinding that an admin makes, as docs/howto/gardener.md has it.
func (p plane) joinSeed(t *testing.T, cluster, ours string) (plane, *rest.Config) {
	t.Helper()
	folder := t.TempDir()
	p.must(t, "", "credence", "cluster", "join", cluster, "--from-contexts", "--out", folder)
	t.Cleanup(func() { p.must(t, "", "credence", "cluster", "leave", cluster) })
	agent := fromFile(t, filepath.Join(folder, "agent.kubeconfig"))
	expect(t, wantAnswer(do(t, agent, "GET", identitiesPath(ours)+"/banana-testing", "", ""), 403, "cannot get resource"), "without the RoleBinding")
	p.must(t, "", "kubectl", "create", "rolebinding", "credence:contexts:"+cluster+"-agent", "-n", ours, "--clusterrole=credence:agent:identities", "--serviceaccount="+identityv1alpha1.WorkloadClusters+":"+cluster+"-agent")
	return newPlane(t, "--arg", "agent=--identity-kubeconfig="+filepath.Join(folder, "agent.kubeconfig"), "--arg", "webhook=--identity-kubeconfig="+filepath.Join(folder, "webhook.kubeconfig")), agent
}

// The agent of a cluster that has joined makes the Secrets of the Shoots on it, as in the document's sample, follows them, and removes its own. It runs
// alone, as it deletes the namespace of all clusters.
func TestPlaneDeliverForContextObjects(t *testing.T) {
	garden := aloneWithPlane(t)
	ours := garden.namespace(t)
	garden.awsIdentity(t, ours, "banana-testing", "banana")
	garden.awsIdentity(t, ours, "cherry", "cherry")
	garden.gardenerInstalled(t)
	bind := func(to string) {
		t.Helper()
		garden.must(t, fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"name":"infra","namespace":%q},"provider":{"type":"aws"},"workloadIdentityRef":{"name":%q,"namespace":%q}}`, ours, to, ours), "kubectl", "apply", "-f", "-")
	}
	bind("banana-testing")
	t.Cleanup(func() {
		garden.must(t, "", "kubectl", "delete", "namespace", identityv1alpha1.WorkloadClusters, "--timeout=5m")
	})
	cluster := "d-" + ours
	seed, agent := garden.joinSeed(t, cluster, ours)
	there := "shoot--" + ours + "--foo"
	root := seed.client(t).CoreV1()
	seed.must(t, "", "kubectl", "create", "namespace", there)
	secrets := root.Secrets(there)
	const extension = "workloadidentity-extension-dns-service"
	kind := strings.Repeat("x", 253-len("workloadidentity-extension-"))
	longest := "workloadidentity-extension-" + kind // a Secret can't have a longer name
	static := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: extension}, Data: map[string][]byte{"accessKey": []byte("static")}}
	must(t, errOf(secrets.Create(t.Context(), static, metav1.CreateOptions{})))
	project := garden.landscapeObject(t, "Project", "", "p-"+ours, fmt.Sprintf(`{"namespace":%q}`, ours))
	foo := garden.landscapeObject(t, "Shoot", ours, "foo", fmt.Sprintf(`{"seedName":%q,"credentialsBindingName":"infra","extensions":[{"type":"dns-service","workloadIdentity":{"name":"cherry"}},{"type":%q,"workloadIdentity":{"name":"cherry"}}]}`, cluster, kind))
	shoot := func(patch string) { garden.patchShoot(t, ours, "foo", patch) }
	shoot(fmt.Sprintf(`{"status":{"technicalID":%q}}`, there))
	long := strings.Repeat("n", 253) // of which there is no namespace
	garden.landscapeObject(t, "Shoot", ours, long, fmt.Sprintf(`{"seedName":%q,"extensions":[{"type":"dns-service","workloadIdentity":{"name":"cherry"}}]}`, cluster))
	garden.patchShoot(t, ours, long, `{"status":{"technicalID":"shoot--`+long+`"}}`)

	t.Log("without the label")
	seed.awaitWarning(t, there, "Secret/cloudprovider NamespaceNotEnabled", "a cluster admin allows it with: kubectl label namespace "+there+" "+v1alpha1.LabelNamespaceContexts+"=enabled")
	seed.awaitWarning(t, there, "Secret/"+longest+" NamespaceNotEnabled")
	garden.awaitWarning(t, ours, "Shoot/foo NamespaceNotEnabled")
	garden.explained(t, 0, []string{"clusters    " + cluster + "\n", "Secret " + there + "/cloudprovider in cluster " + cluster, "NamespaceNotEnabled: "}, "context", "shoots."+landscapeGroup+"/foo", "-n", ours)
	if list, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %v: want the Secret that was there alone", list.Items, err)
	}

	t.Log("with the label: the document's sample")
	seed.deliverTo(t, there, v1alpha1.NamespaceEnabled)
	of := func(identity string) func(carried) bool {
		return func(c carried) bool { return strings.Contains(c.Subject, ":"+ours+":"+identity+":") }
	}
	secret, first := seed.awaitToken(t, there, "cloudprovider", of("banana-testing"))
	if secret.Annotations[v1alpha1.AnnotationContextDelivery] == "" || secret.Annotations[v1alpha1.AnnotationRenewTimestamp] == "" || secret.Annotations[v1alpha1.AnnotationInputs] == "" {
		t.Errorf("our own annotations: %v", secret.Annotations)
	}
	for _, own := range []string{v1alpha1.AnnotationContextDelivery, v1alpha1.AnnotationRenewTimestamp, v1alpha1.AnnotationInputs} {
		delete(secret.Annotations, own)
	}
	if secret.Labels[v1alpha1.LabelExcludedFromBackup] != "true" {
		t.Errorf("our own label: %v", secret.Labels)
	}
	delete(secret.Labels, v1alpha1.LabelExcludedFromBackup)
	token := string(secret.Data["token"])
	delete(secret.Data, "token")
	sample := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cloudprovider", Namespace: there,
			Annotations: map[string]string{
				"workloadidentity.authentication.gardener.cloud/namespace":      ours,
				"workloadidentity.authentication.gardener.cloud/name":           "banana-testing",
				"workloadidentity.authentication.gardener.cloud/context-object": `{"apiVersion":"` + landscapeGroup + `/v1beta1","kind":"Shoot","name":"foo","namespace":"` + ours + `","uid":"` + foo + `"}`,
			},
			Labels: map[string]string{
				"authentication.gardener.cloud/purpose":                   "workload-identity-token-requestor",
				"workloadidentity.authentication.gardener.cloud/provider": "aws",
			},
		},
		Data: map[string][]byte{
			"config":          []byte("apiVersion: aws.authentication.gardener.cloud/v1alpha1\niamRoleARN: arn:aws:iam::112233445566:role/banana\nkind: Config\n"),
			"credentialsFile": []byte("[default]\nrole_arn=arn:aws:iam::112233445566:role/banana\nweb_identity_token_file=/var/run/workload-identity/aws/token\n"),
		},
		Type: corev1.SecretTypeOpaque,
	}
	got := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Namespace: secret.Namespace, Annotations: secret.Annotations, Labels: secret.Labels}, Data: secret.Data, Type: secret.Type}
	if diff := cmp.Diff(sample, got); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
	garden.must(t, token, "credence", "token", "verify", "-", "--issuer", garden.Issuer, "--audience", "sts.amazonaws.com", "--ca-file", garden.CAFile)
	_, c := claims(t, token)
	of26 := c["gardener.cloud"].(map[string]any)
	for claim, want := range map[string]any{
		"shoot":   map[string]any{"name": "foo", "namespace": ours, "uid": foo},
		"project": map[string]any{"name": "p-" + ours, "uid": project},
	} {
		if diff := cmp.Diff(want, of26[claim]); diff != "" {
			t.Errorf("claim %s (-want +got):\n%s", claim, diff)
		}
	}
	if of26["seed"].(map[string]any)["name"] != cluster {
		t.Errorf("claim seed: %v", of26["seed"])
	}

	t.Log("a Secret that is not the agent's")
	seed.awaitWarning(t, there, "Secret/"+extension+" SecretNotOwned", "left alone")
	if kept, err := secrets.Get(t.Context(), extension, metav1.GetOptions{}); err != nil || string(kept.Data["accessKey"]) != "static" || len(kept.Labels)+len(kept.Annotations) != 0 {
		t.Errorf("it has become %v, %v", kept, err)
	}
	seed.must(t, "", "kubectl", "delete", "secret", extension, "-n", there)
	seed.awaitToken(t, there, extension, of("cherry"))
	seed.awaitToken(t, there, longest, of("cherry"))

	seed.must(t, "", "kubectl", "delete", "secret", "cloudprovider", "-n", there)
	_, second := seed.awaitToken(t, there, "cloudprovider", of("banana-testing"))
	if second.ID == first.ID {
		t.Error("the Secret that was deleted is still there")
	}

	t.Log("new tokens on request, once")
	object := "shoots." + landscapeGroup + "/foo"
	lea := "lea-" + ours
	garden.role(t, ours, "sees-shoots", []rbacv1.PolicyRule{{APIGroups: []string{landscapeGroup}, Resources: []string{"shoots"}, Verbs: []string{"get"}}}, lea)
	eventually(t, func() error {
		if _, stderr, code := garden.command(t, "", "credence", "renew", object, "-n", ours, "--as", lea); code != 1 || !strings.Contains(stderr, `cannot patch resource "shoots"`) {
			return fmt.Errorf("a user who may not patch the Shoot: %d %s", code, stderr)
		}
		return nil
	})
	seed.credence(t, 0, []string{"renewed   Secret " + there + "/cloudprovider\n", "renewed   Secret " + there + "/" + extension + "\n", "and all Secrets have them"}, "renew", object, "--timeout", "5m", "-n", ours, "--identity-kubeconfig", garden.Kubeconfig)
	renewed, third := seed.awaitToken(t, there, "cloudprovider", nil)
	if renewed.Annotations[v1alpha1.AnnotationContextRenewal] == "" || third.ID == second.ID {
		t.Errorf("annotations %v, token %s after %s", renewed.Annotations, third.ID, second.ID)
	}
	// Where Secrets of the cluster are not seen, it was requested only: again, and the annotation stays for the agent.
	garden.credence(t, 0, []string{"Shoot " + ours + "/foo: new tokens were requested\n", "not seen", "the object is on " + cluster, "stays on the object"}, "renew", object, "-n", ours)
	_, third = seed.awaitToken(t, there, "cloudprovider", func(c carried) bool { return c.ID != third.ID })

	t.Log("another identity, and many other references, with the agent and the server killed")
	all := crowd{garden, seed, ours}
	all.add(t, cluster, "banana-testing")
	all.want(t, "banana-testing")
	all.refer(t, 0, crowdShoots/2, "cherry")
	bind("cherry")
	seed.kill(t, "agent")
	garden.kill(t, "apiserver")
	all.refer(t, crowdShoots/2, crowdShoots, "cherry")
	all.want(t, "cherry")
	all.remove(t)
	all.want(t, "")
	moved, fourth := seed.awaitToken(t, there, "cloudprovider", of("cherry"))
	if moved.Annotations[v1alpha1.AnnotationName] != "cherry" || !strings.Contains(string(moved.Data["config"]), "role/cherry") || !strings.Contains(string(moved.Data["credentialsFile"]), "role/cherry") || fourth.ID == third.ID {
		t.Errorf("%v %s", moved.Annotations, moved.Data["config"])
	}
	bind("banana-testing")
	_, last := seed.awaitToken(t, there, "cloudprovider", of("banana-testing"))

	stolen := moveShoot(t, neighbor{seed, garden, agent, cluster, ours}, foo)

	t.Log("a static key, and back")
	followStaticKey(t, garden, seed, agent, ours, there, foo, last.ID)

	t.Log("the end")
	garden.awaitWarning(t, ours, "Shoot/"+long+" DeliveryProblem", "is not the name of a namespace: it has 260 characters, and may have 63")
	gone := func(name string) {
		t.Helper()
		eventually(t, func() error {
			if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("Secret %s is still there: %v", name, err)
			}
			return nil
		})
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Data: map[string][]byte{"a": []byte("b")}}
	must(t, errOf(secrets.Create(t.Context(), theirs, metav1.CreateOptions{})))
	shoot(`{"spec":{"extensions":null}}`)
	gone(extension)
	gone(longest)
	seed.awaitToken(t, there, "cloudprovider", of("banana-testing"))
	seed.kill(t, "agent")
	garden.must(t, "", "kubectl", "delete", "-n", ours, "shoots."+landscapeGroup, "foo")
	gone("cloudprovider")
	expect(t, errOf(secrets.Get(t.Context(), "theirs", metav1.GetOptions{})))
	stolen.leave()
	garden.must(t, "", "kubectl", "delete", "projects."+landscapeGroup, "p-"+ours)
}
