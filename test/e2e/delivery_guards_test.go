package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	agentUser  = "system:serviceaccount:credence-system:credence-agent"
	agentGroup = "system:serviceaccounts"
)

// clientAs is a client of another user.
func (p plane) clientAs(t *testing.T, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	client := need(kubernetes.NewForConfig(p.as(t, user, groups...)))(t)
	return client
}

// admin makes a user an admin of a namespace, who may not use identities.
func (p plane) admin(t *testing.T, namespace, user string) kubernetes.Interface {
	t.Helper()
	p.bind(t, namespace, "admin", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: user})
	client := p.clientAs(t, user)
	eventually(t, func() error {
		_, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	})
	return client
}

// bind gives a subject a ClusterRole in a namespace, and returns once that counts.
func (p plane) bind(t *testing.T, namespace, role string, subject rbacv1.Subject) {
	t.Helper()
	client := p.client(t).RbacV1()
	must(t, errOf(client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})))
	bound := need(client.ClusterRoles().Get(t.Context(), role, metav1.GetOptions{}))(t)
	p.untilGiven(t, namespace, subject, bound.Rules)
}

// letUse lets a user use the identities of a namespace.
func (p plane) letUse(t *testing.T, namespace, user string) {
	t.Helper()
	p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: user})
}

// letAgent lets the agent mint tokens of the identities of a namespace.
func (p plane) letAgent(t *testing.T, namespace string) {
	t.Helper()
	p.bind(t, namespace, "credence:agent:identities", rbacv1.Subject{Kind: "ServiceAccount", Name: "credence-agent", Namespace: "credence-system"})
}

// tokenSecret is a Secret that requests tokens of an identity.
func tokenSecret(name, namespace, identity string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor},
			Annotations: map[string]string{v1alpha1.AnnotationName: identity, v1alpha1.AnnotationNamespace: namespace},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// refused checks that a request was refused, and with which words.
func refused(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was let through", what)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s was refused with %v, want %q in it", what, err, word)
		}
	}
}

func allowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s was refused: %v", what, err)
	}
}

// patchable is a client of one kind of objects in a namespace.
type patchable[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*T, error)
}

// patch changes an object by a merge patch.
func patch[T any](t *testing.T, client patchable[T], name, content string, subresources ...string) error {
	t.Helper()
	_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(content), metav1.PatchOptions{}, subresources...)
	return err
}

// patchRefused holds that each of some changes of an object is refused.
func patchRefused[T any](t *testing.T, client patchable[T], name string, patches map[string]string, words ...string) {
	t.Helper()
	for what, content := range patches {
		refused(t, what+", of "+name, patch(t, client, name, content), words...)
	}
}

// patchAllowed holds that each of some changes of an object is allowed.
func patchAllowed[T any](t *testing.T, client patchable[T], name string, patches map[string]string) {
	t.Helper()
	for what, content := range patches {
		allowed(t, what+", of "+name, patch(t, client, name, content))
	}
}

// byBinding has a Secret name a binding in place of its identity.
const byBinding = `{"metadata":{"annotations":{"` + v1alpha1.AnnotationName + `":null,"` + v1alpha1.AnnotationBinding + `":"infra"}}}`

// TestWhoMayLabelSecrets is the attack on every way to get tokens written into a Secret without the right to use the identity.
func TestWhoMayLabelSecrets(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	mallory, alice := shared.admin(t, namespace, "mallory-"+namespace), shared.admin(t, namespace, "alice-"+namespace)
	shared.letUse(t, namespace, "alice-"+namespace)
	secrets, hers := mallory.CoreV1().Secrets(namespace), alice.CoreV1().Secrets(namespace)
	create := func(client kubernetes.Interface, change func(*corev1.Secret)) error {
		secret := tokenSecret("", namespace, "banana")
		secret.GenerateName = "s-"
		if change != nil {
			change(secret)
		}
		_, err := client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		return err
	}
	const missing = "the verb use"
	eventually(t, func() error { return create(alice, nil) })
	refused(t, "a Secret of one who may not use the identity", create(mallory, nil), "mallory-"+namespace, missing, "kubectl create rolebinding")
	refused(t, "a Secret that names no identity", create(alice, func(s *corev1.Secret) { s.Annotations = nil }), v1alpha1.AnnotationName)
	refused(t, "a Secret that names no namespace", create(alice, func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationNamespace) }), v1alpha1.AnnotationNamespace)
	refused(t, "an identity of another namespace", create(alice, func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationNamespace] = "kube-system" }), missing)
	for _, context := range []string{
		`{"apiVersion":"v1","kind":"ServiceAccount","name":"default","namespace":"` + namespace + `","uid":"u"}`,
		`{"apiVersion":"v1","kind":"\u0053erviceAccount","name":"default","namespace":"` + namespace + `","uid":"u"}`,
	} {
		refused(t, "a service account as context", create(alice, func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationContextObject] = context }), "agent", "identity.credence.dev/workload-identities")
	}
	refused(t, "a name that is kept for the agent", create(alice, func(s *corev1.Secret) { s.GenerateName, s.Name, s.Labels = "", "credence-token-web-x", nil }), "credence-token-")
	refused(t, "a name like those that are kept for the agent", create(alice, func(s *corev1.Secret) { s.GenerateName = "credence-token-web-" }), "credence-token-")

	// Labelled later, and changed later.
	plain := tokenSecret("later", namespace, "banana")
	plain.Labels = nil
	_, err := secrets.Create(t.Context(), plain, metav1.CreateOptions{})
	allowed(t, "a Secret without the label", err)
	label := `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":"` + v1alpha1.PurposeTokenRequestor + `"}}}`
	refused(t, "the label, added later", patch(t, secrets, "later", label), missing)
	allowed(t, "the label, added by one who may", patch(t, hers, "later", label))
	shoot := string(annotate(v1alpha1.AnnotationContextObject, `{"apiVersion":"a/v1","kind":"Shoot","name":"b","uid":"u"}`))
	refused(t, "a context that no token has", patch(t, hers, "later", shoot), "names a a/v1 Shoot")
	patchRefused(t, secrets, "later", map[string]string{
		"another identity": string(annotate(v1alpha1.AnnotationName, "cherry")), "another namespace": string(annotate(v1alpha1.AnnotationNamespace, "kube-system")),
	}, missing)
	refused(t, "no identity any more", patch(t, secrets, "later", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationName+`":null}}}`), v1alpha1.AnnotationName)
	for _, client := range []corev1client.SecretInterface{secrets, hers} { // also one who may use the identity
		refused(t, "a binding in place of the identity", patch(t, client, "later", byBinding), missing, "may not have tokens of CredentialsBinding "+namespace+"/infra")
	}
	refused(t, "another config", patch(t, secrets, "later", `{"data":{"config":"eDogMQo="}}`), "config is written by the agent")
	refused(t, "another digest", patch(t, secrets, "later", string(annotate(v1alpha1.AnnotationInputs, "forged"))), "token-inputs is written by the agent")

	// A change that does not concern the identity needs no right to it.
	patchAllowed(t, secrets, "later", map[string]string{
		"an annotation of their own": string(annotate("note", "x")), "requesting a new token": string(annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken)),
		"data of their own": `{"data":{"theirs":"eA=="}}`,
	})
	allowed(t, "a finalizer", patch(t, secrets, "later", `{"metadata":{"finalizers":["e2e.example/x"]}}`))
	allowed(t, "no finalizer any more", patch(t, secrets, "later", `{"metadata":{"finalizers":null}}`))
	allowed(t, "deletion", secrets.Delete(t.Context(), "later", metav1.DeleteOptions{}))
}

func annotate(key, value string) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		panic(err)
	}
	return patch
}

// TestWhatTheAgentMayWrite takes the part of an agent that an attacker has taken over.
func TestWhatTheAgentMayWrite(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	root := shared.client(t)
	agent := shared.clientAs(t, agentUser, agentGroup)
	secrets := agent.CoreV1().Secrets(namespace)
	eventually(t, func() error { return list(t, agent, namespace) })

	users := root.CoreV1().Secrets(namespace)
	for _, secret := range []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Data: map[string][]byte{"x": []byte("y")}}, tokenSecret("labelled", namespace, "banana")} {
		must(t, errOf(users.Create(t.Context(), secret, metav1.CreateOptions{})))
	}
	const others = "no others"
	patchRefused(t, secrets, "plain", map[string]string{
		"other data": `{"data":{"x":"eg=="}}`,
		"the label": `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":"` + v1alpha1.PurposeTokenRequestor + `"},"annotations":{"` +
			v1alpha1.AnnotationName + `":"banana","` + v1alpha1.AnnotationNamespace + `":"` + namespace + `"}}}`,
	}, others)
	refused(t, "taking the label away", patch(t, secrets, "labelled", `{"metadata":{"labels":{"`+v1alpha1.LabelPurpose+`":null}}}`), others)
	patchRefused(t, secrets, "labelled", map[string]string{"another identity": string(annotate(v1alpha1.AnnotationName, "cherry")), "a binding in place of the identity": byBinding}, "may not change which identity")
	allowed(t, "a token in a labelled Secret", patch(t, secrets, "labelled", `{"data":{"token":"eA=="}}`))
	patchRefused(t, secrets, "labelled", map[string]string{
		"an owner":     `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
		"a finalizer":  `{"metadata":{"finalizers":["e2e.example/x"]}}`,
		"immutability": `{"immutable":true}`,
	}, "may not change who owns a Secret")
	for _, name := range []string{"labelled", "plain"} {
		refused(t, "deleting the Secret "+name+" of a user", secrets.Delete(t.Context(), name, metav1.DeleteOptions{}), others)
	}
	contextOf := func(account, namespace string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationContextObject] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ServiceAccount","name":"%s","namespace":"%s","uid":"u"}`, account, namespace)
		}
	}
	create := func(change func(*corev1.Secret)) error {
		secret := tokenSecret("credence-token-web-x", namespace, "banana")
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "web", UID: "u"}}
		contextOf("web", namespace)(secret)
		change(secret)
		_, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for what, change := range map[string]func(*corev1.Secret){
		"with any name":                              func(s *corev1.Secret) { *s = *tokenSecret("free", namespace, "banana") },
		"that no service account owns":               func(s *corev1.Secret) { *s = *tokenSecret(s.Name, namespace, "banana") },
		"whose owner is not its context":             contextOf("other", namespace),
		"for a service account of another namespace": contextOf("web", "kube-system"),
		"with an identity of another namespace":      func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationNamespace] = "kube-system" },
		"with a finalizer":                           func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example/x"} },
		"that is immutable":                          func(s *corev1.Secret) { s.Immutable = new(true) },
	} {
		refused(t, "a Secret "+what, create(change), others)
	}
	allowed(t, "its own Secret", create(func(*corev1.Secret) {}))

	// Service accounts.
	accounts := agent.CoreV1().ServiceAccounts(namespace)
	must(t, errOf(root.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Annotations: map[string]string{v1alpha1.AnnotationOperation: v1alpha1.OperationRenewToken, "note": "x"}}}, metav1.CreateOptions{})))
	patchRefused(t, accounts, "web", map[string]string{
		"another annotation":        string(annotate("more", "x")),
		"another value":             string(annotate("note", "y")),
		"no annotation any more":    `{"metadata":{"annotations":{"note":null}}}`,
		"another operation":         string(annotate(v1alpha1.AnnotationOperation, "reconcile")),
		"a label":                   `{"metadata":{"labels":{"a":"b"}}}`,
		"a finalizer":               `{"metadata":{"finalizers":["e2e.example/x"]}}`,
		"an image pull secret":      `{"imagePullSecrets":[{"name":"plain"}]}`,
		"automounting":              `{"automountServiceAccountToken":true}`,
		"removal, and more with it": `{"metadata":{"annotations":{"` + v1alpha1.AnnotationOperation + `":null,"more":"x"}}}`,
	}, "nothing else")
	allowed(t, "removing the annotation of the request", patch(t, accounts, "web", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationOperation+`":null}}}`))

	// Requests that its role does not allow.
	_, err := agent.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "web", nil, metav1.CreateOptions{})
	refused(t, "a token of a service account", err, "forbidden")
	_, err = agent.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view", APIGroup: rbacv1.GroupName}}, metav1.CreateOptions{})
	refused(t, "a role binding", err, "forbidden")
	_, err = agent.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	refused(t, "a pod", err, "forbidden")
	got := do(t, shared.as(t, agentUser, agentGroup), "POST", identitiesPath(namespace)+"/banana/token", "application/json", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest"}`)
	if got.Code != 403 {
		t.Errorf("a token in a namespace without its role binding: %d %s, want 403", got.Code, got.Body)
	}
}

// While a pod has a gate, where it runs can be changed: not by the agent.
func TestWhatTheAgentMayChangeOfPods(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	root, agent := shared.client(t), shared.clientAs(t, agentUser, agentGroup)
	// The agent gets no token of the identity, and leaves the gate where it is.
	shared.enable(t, namespace)
	shared.awsIdentity(t, namespace, "banana", "dev")
	shared.accountOf(t, namespace, "web", "banana")
	pod := podOf("web")
	pod.GenerateName, pod.Name, pod.Spec.SchedulingGates = "", "p", []corev1.PodSchedulingGate{{Name: "other.example/gate"}}
	eventually(t, func() error {
		created, err := root.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err == nil && len(created.Spec.SchedulingGates) != 2 {
			err = fatal{fmt.Errorf("created with the gates %v", created.Spec.SchedulingGates)}
		}
		return err
	})
	pods := agent.CoreV1().Pods(namespace)
	const gate = `{"op":"remove","path":"/spec/schedulingGates/1"}`
	for what, patch := range map[string]string{
		"an image":                `[{"op":"replace","path":"/spec/containers/0/image","value":"evil:1"}]`,
		"an image, with the gate": `[` + gate + `,{"op":"replace","path":"/spec/containers/0/image","value":"evil:1"}]`,
		"the gate of another":     `[{"op":"remove","path":"/spec/schedulingGates/0"}]`,
		"all gates":               `[{"op":"remove","path":"/spec/schedulingGates"}]`,
		"where it runs":           `[` + gate + `,{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}]`,
		"an affinity":             `[` + gate + `,{"op":"add","path":"/spec/affinity","value":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}]`,
		"a toleration":            `[` + gate + `,{"op":"add","path":"/spec/tolerations/-","value":{"key":"a","operator":"Exists"}}]`,
		"a label":                 `[` + gate + `,{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`,
		"an annotation":           `[` + gate + `,{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`,
		"a finalizer":             `[` + gate + `,{"op":"add","path":"/metadata/finalizers","value":["e2e.example/x"]}]`,
		"an owner":                `[` + gate + `,{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"u"}]}]`,
		"a deadline":              `[` + gate + `,{"op":"add","path":"/spec/activeDeadlineSeconds","value":1}]`,
		"its grace period":        `[` + gate + `,{"op":"add","path":"/spec/terminationGracePeriodSeconds","value":1}]`,
	} {
		_, err := pods.Patch(t.Context(), "p", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		refused(t, what, err)
		if err != nil && !strings.Contains(err.Error(), "nothing else") && !strings.Contains(err.Error(), "pod updates may not change fields") {
			t.Errorf("%s was refused with %v", what, err)
		}
	}
	status := func(patch string) error {
		_, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
	// Another part sets conditions, too: they stay.
	must(t, errOf(root.CoreV1().Pods(namespace).Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"e2e.example/x","status":"True"}]}}`), metav1.PatchOptions{}, "status")))
	const waiting = `{"type":"` + v1alpha1.ConditionTokenReady + `","status":"False","reason":"TokenMissing","message":"m"}`
	for what, patch := range map[string]string{
		"a phase":                       `{"status":{"phase":"Running"}}`,
		"an address":                    `{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}`,
		"the address of a node":         `{"status":{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}]}}`,
		"a nominated node":              `{"status":{"nominatedNodeName":"n"}}`,
		"when it began":                 `{"status":{"startTime":"2026-01-01T00:00:00Z"}}`,
		"a message":                     `{"status":{"message":"m","reason":"r"}}`,
		"another condition":             `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
		"another, with its own":         `{"status":{"conditions":[` + waiting + `,{"type":"PodScheduled","status":"True"}]}}`,
		"no conditions":                 `{"status":{"conditions":[{"$patch":"replace"},` + waiting + `]}}`,
		"the state of a container":      `{"status":{"containerStatuses":[{"name":"main","image":"i","imageID":"","ready":true,"restartCount":0,"started":true}]}}`,
		"an ephemeral container":        `{"status":{"ephemeralContainerStatuses":[{"name":"d","image":"i","imageID":"","ready":true,"restartCount":0}]}}`,
		"a label, by the status":        `{"metadata":{"labels":{"a":"b"}},"status":{"conditions":[` + waiting + `]}}`,
		"an annotation, by the status":  `{"metadata":{"annotations":{"a":"b"}}}`,
		"a finalizer, by the status":    `{"metadata":{"finalizers":["e2e.example/x"]}}`,
		"a resize that is being done":   `{"status":{"resize":"InProgress"}}`,
		"devices of a claim of another": `{"status":{"resourceClaimStatuses":[{"name":"a","resourceClaimName":"b"}]}}`,
	} {
		// An older cluster drops the field.
		if what != "devices of a claim of another" || shared.minor(t) >= 34 {
			refused(t, what, status(patch))
		}
	}
	allowed(t, "its own condition", status(`{"status":{"conditions":[`+waiting+`]}}`))
	refused(t, "removing another condition", status(`{"status":{"conditions":[{"$patch":"delete","type":"e2e.example/x"}]}}`), "of the status of a pod")
	refused(t, "resources by a subresource", func() error {
		_, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{}}`), metav1.PatchOptions{}, "resize")
		return err
	}(), "forbidden")
	_, err := pods.Patch(t.Context(), "p", types.JSONPatchType, []byte(`[`+gate+`]`), metav1.PatchOptions{})
	allowed(t, "removing its own gate", err)
	refused(t, "deleting a pod", pods.Delete(t.Context(), "p", metav1.DeleteOptions{}), "forbidden")
}

func TestAnnotationInANamespaceThatIsNotEnabled(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	accounts := shared.client(t).CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), account("web", "banana"), metav1.CreateOptions{})
	refused(t, "the annotation", err, "credence enable "+namespace)
	shared.userOf(t, namespace, "web")
	later := string(annotate(v1alpha1.AnnotationAccountIdentities, "banana"))
	refused(t, "the annotation, added later", patch(t, accounts, "web", later), "credence enable "+namespace)
	shared.enable(t, namespace)
	eventually(t, func() error { return patch(t, accounts, "web", later) })
}

// enable lets service accounts of a namespace give their pods identities.
func (p plane) enable(t *testing.T, namespace string) {
	t.Helper()
	label(t, p, t.Context(), namespace, `"`+v1alpha1.NamespaceEnabled+`"`)
}
