package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

const (
	binderUser   = "system:serviceaccount:credence-system:credence-binder"
	agentBinding = "credence:agent:secrets"

	webhookUser    = "system:serviceaccount:credence-system:credence-webhook"
	webhookBinding = "credence:webhook:pods"
)

func list(t *testing.T, client kubernetes.Interface, namespace string) error {
	t.Helper()
	_, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	return err
}

// The agent has the Secrets of labelled namespaces, from the label until the last Secret with tokens is gone, and no others: not those
// of the namespace that may hold the signing keys, whatever label that is given.
func TestAgentMayReadSecretsOfLabelledNamespacesAlone(t *testing.T) {
	inTurn(t)
	namespace, plain := shared.namespace(t), shared.namespace(t)
	root, agent := shared.client(t), shared.clientAs(t, agentUser, agentGroup)
	for _, where := range []string{"credence-system", "kube-system", "default", namespace, plain, ""} {
		if err := list(t, agent, where); !apierrors.IsForbidden(err) {
			t.Errorf("the agent lists the Secrets of %q: %v", where, err)
		}
	}
	for _, where := range []string{"credence-system", "kube-system"} {
		shared.enable(t, where)
		t.Cleanup(func() { label(t, shared, context.WithoutCancel(t.Context()), where, "null") })
	}

	// A Secret of before the label is found when the namespace is given it.
	shared.awsIdentity(t, namespace, "banana", "dev")
	shared.letAgent(t, namespace)
	for _, where := range []string{namespace, plain} {
		must(t, errOf(root.CoreV1().Secrets(where).Create(t.Context(), tokenSecret("early", namespace, "banana"), metav1.CreateOptions{})))
	}
	shared.enable(t, namespace)
	shared.awaitToken(t, namespace, "early", nil)
	expect(t, list(t, agent, namespace), "the agent lists the Secrets of a labelled namespace")
	pods := func(namespace string) error {
		_, err := shared.clientAs(t, webhookUser, agentGroup).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	eventually(t, func() error { return pods(namespace) })
	for _, where := range []string{"credence-system", "kube-system", plain, ""} {
		if err := pods(where); !apierrors.IsForbidden(err) {
			t.Errorf("the webhook lists the pods of %q: %v", where, err)
		}
		if err := list(t, agent, where); !apierrors.IsForbidden(err) {
			t.Errorf("the agent lists the Secrets of %q: %v", where, err)
		}
	}
	if out, _, _ := shared.command(t, "", "kubectl", "auth", "can-i", "get", "secrets", "-n", "credence-system", "--as", agentUser); out != "no\n" {
		t.Errorf("kubectl auth can-i get secrets -n credence-system --as %s prints %q, want no", agentUser, out)
	}

	// While a Secret with tokens stands, it is served, whatever becomes of the label; with the last one the right goes, too.
	label(t, shared, t.Context(), namespace, "null")
	_, before := shared.awaitToken(t, namespace, "early", nil)
	allowed(t, "a request for a new token", patch(t, root.CoreV1().Secrets(namespace), "early", string(annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken))))
	shared.awaitToken(t, namespace, "early", func(c carried) bool { return c.ID != before.ID })
	must(t, root.CoreV1().Secrets(namespace).Delete(t.Context(), "early", metav1.DeleteOptions{}))
	eventually(t, func() error {
		if secrets, pods := list(t, agent, namespace), pods(namespace); !apierrors.IsForbidden(secrets) || !apierrors.IsForbidden(pods) {
			return fmt.Errorf("the agent still may read Secrets (%v), or the webhook list pods (%v)", secrets, pods)
		}
		return nil
	})
	if secret, err := root.CoreV1().Secrets(plain).Get(t.Context(), "early", metav1.GetOptions{}); err != nil || len(secret.Data["token"]) != 0 {
		t.Errorf("the Secret of a namespace without the label has %d bytes of token, %v", len(secret.Data["token"]), err)
	}

	// And it comes back with the label, also after it was taken away.
	shared.enable(t, namespace)
	eventually(t, func() error { return list(t, agent, namespace) })
	must(t, root.RbacV1().RoleBindings(namespace).Delete(t.Context(), agentBinding, metav1.DeleteOptions{}))
	eventually(t, func() error {
		_, err := root.RbacV1().RoleBindings(namespace).Get(t.Context(), agentBinding, metav1.GetOptions{})
		return err
	})
}

func label(t *testing.T, p plane, ctx context.Context, namespace, value string) {
	t.Helper()
	content := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelNamespaceIdentities + `":` + value + `}}}`)
	expect(t, errOf(p.client(t).CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, content, metav1.PatchOptions{})))
}

// TestWhatTheBinderMayBind takes the part of a binder that an attacker has taken over.
func TestWhatTheBinderMayBind(t *testing.T) {
	inTurn(t)
	namespace, plain := shared.namespace(t), shared.namespace(t)
	shared.enable(t, namespace)
	root, binder := shared.client(t), shared.clientAs(t, binderUser, agentGroup)
	for _, name := range []string{agentBinding, webhookBinding} {
		eventually(t, func() error {
			_, err := root.RbacV1().RoleBindings(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err
		})
	}
	shared.enable(t, "kube-public")
	t.Cleanup(func() { label(t, shared, context.WithoutCancel(t.Context()), "kube-public", "null") })
	bind := func(namespace string, change func(*rbacv1.RoleBinding)) error {
		binding := rights.OfAgent(namespace)
		if change != nil {
			change(binding)
		}
		// The rule is written in Go as well: what the policy refuses lets the agent deliver nothing.
		in, err := root.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		must(t, err)
		inGo := rights.Delivered(in) && (binding.Name != rights.AgentSecrets || rights.LetDeliver(binding))
		// Without admission policies a dry run would be let through, too.
		_, err = binder.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if allowed := err == nil || apierrors.IsAlreadyExists(err); binding.Name == rights.AgentSecrets && allowed != inGo {
			t.Errorf("RoleBinding of %s to %v in %s: the policy answers %v, package rights %v", binding.RoleRef.Name, binding.Subjects, namespace, err, inGo)
		}
		return err
	}
	if err := bind(namespace, nil); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the RoleBinding of the agent in a labelled namespace: %v, want that it exists", err)
	}
	toWebhook := func(b *rbacv1.RoleBinding) {
		b.Name, b.RoleRef.Name, b.Subjects[0].Name = webhookBinding, webhookBinding, "credence-webhook"
	}
	if err := bind(namespace, toWebhook); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the RoleBinding of the webhook in a labelled namespace: %v, want that it exists", err)
	}
	for what, change := range map[string]func(*rbacv1.RoleBinding){
		"the webhook's role to the agent":      func(b *rbacv1.RoleBinding) { b.Name, b.RoleRef.Name = webhookBinding, webhookBinding },
		"the agent's role to the webhook":      func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "credence-webhook" },
		"the agent's role by the other's name": func(b *rbacv1.RoleBinding) { b.Name, b.Subjects[0].Name = webhookBinding, "credence-webhook" },
		"another name":                         func(b *rbacv1.RoleBinding) { b.Name = "other" },
		"a generated name":                     func(b *rbacv1.RoleBinding) { b.Name, b.GenerateName = "", agentBinding },
		"another subject":                      func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "credence-binder" },
		"a user": func(b *rbacv1.RoleBinding) {
			b.Subjects[0] = rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"}
		},
		"two subjects": func(b *rbacv1.RoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:authenticated"})
		},
		"no subject": func(b *rbacv1.RoleBinding) { b.Subjects = nil },
	} {
		refused(t, what, bind(namespace, change), "the binder may")
	}
	for _, role := range []string{"cluster-admin", "edit", "credence:binder", "credence:agent:identities"} {
		refused(t, "the role "+role, bind(namespace, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = role }), "forbidden")
	}
	// A role that the binder has itself could be bound as far as RBAC goes.
	refused(t, "a role without a rule", bind(namespace, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = emptyRole(t, root) }), "no other role")
	for _, where := range []string{"credence-system", "kube-system", "kube-public", "default", plain} {
		refused(t, "a binding in "+where, bind(where, nil), "never in credence-system")
		refused(t, "a binding of the webhook in "+where, bind(where, toWebhook), "never in credence-system")
	}

	rbac := binder.RbacV1()
	const all = `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`
	_, err := rbac.ClusterRoles().Patch(t.Context(), agentBinding, types.MergePatchType, []byte(all), metav1.PatchOptions{})
	refused(t, "more rights in the role", err, "forbidden")
	_, err = rbac.RoleBindings(namespace).Patch(t.Context(), agentBinding, types.MergePatchType, []byte(`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`), metav1.PatchOptions{})
	refused(t, "another subject of a binding that is there", err, "forbidden")
	refused(t, "deleting a binding", rbac.RoleBindings(namespace).Delete(t.Context(), agentBinding, metav1.DeleteOptions{}), "forbidden")
	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentBinding}}, metav1.CreateOptions{})
	refused(t, "a ClusterRoleBinding", err, "forbidden")
	_, err = rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	refused(t, "a Role", err, "forbidden")
	_, err = rbac.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	refused(t, "seeing all RoleBindings", err, "forbidden")
	for _, where := range []string{namespace, "credence-system", ""} {
		refused(t, "the Secrets of "+where, list(t, binder, where), "forbidden")
	}
	_, err = binder.CoreV1().Namespaces().Patch(t.Context(), plain, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	refused(t, "labelling a namespace", err, "forbidden")

	// The agent can do no more with RoleBindings than give its own back.
	agent := shared.clientAs(t, agentUser, agentGroup).RbacV1()
	_, err = agent.RoleBindings(plain).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: agentBinding}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentBinding}}, metav1.CreateOptions{})
	refused(t, "a binding by the agent", err, "forbidden")
	refused(t, "the agent deletes another binding", agent.RoleBindings("credence-system").Delete(t.Context(), "credence:keys", metav1.DeleteOptions{}), "forbidden")
}

// An admin of a namespace has all rights of the agent's role there, and still can't have the agent deliver: neither by that role nor by one of their own.
func TestAdminsDoNotChooseTheAgentsNamespaces(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	owner := "owner-" + namespace
	shared.bind(t, namespace, "admin", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: owner})
	client := shared.clientAs(t, owner).RbacV1()
	eventually(t, func() error {
		_, err := client.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{})
		return err
	})
	for _, role := range []rbacv1.RoleRef{{Kind: "ClusterRole", Name: agentBinding}, {Kind: "Role", Name: "own"}} {
		for name, want := range map[string]string{agentBinding: "an admin of the cluster labels the namespace", "other": ""} {
			role.APIGroup = rbacv1.GroupName
			_, err := client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: role, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "credence-system", Name: "credence-agent"}},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if want == "" {
				allowed(t, "another name, "+role.Kind, err)
			} else {
				refused(t, "by "+role.Kind, err, want)
			}
		}
	}
}

func emptyRole(t *testing.T, root kubernetes.Interface) string {
	t.Helper()
	role := need(root.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		expect(t, root.RbacV1().ClusterRoles().Delete(context.WithoutCancel(t.Context()), role.Name, metav1.DeleteOptions{}))
	})
	return role.Name
}

// A user who creates a Secret that will get no token is warned.
func TestWarningWhereNoTokensAreDelivered(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	create := func(where string) string {
		manifest := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"` + v1alpha1.LabelPurpose + `":"` + v1alpha1.PurposeTokenRequestor + `"},
			"annotations":{"` + v1alpha1.AnnotationName + `":"banana","` + v1alpha1.AnnotationNamespace + `":"` + namespace + `"}},"type":"Opaque"}`
		_, warning, code := shared.command(t, manifest, "kubectl", "create", "--dry-run=server", "-n", where, "-f", "-")
		if code != 0 {
			t.Errorf("create in %s: exit code %d, %s", where, code, warning)
		}
		return warning
	}
	if out := create(namespace); !strings.Contains(out, "Warning: ") || !strings.Contains(out, "before the namespace "+namespace+" has the label identity.credence.dev/workload-identities=enabled") {
		t.Errorf("without the label: %s", out)
	}
	if out := create("kube-system"); !strings.Contains(out, "Warning: ") || !strings.Contains(out, "put the Secret into another one") {
		t.Errorf("in kube-system: %s", out)
	}
	shared.enable(t, namespace)
	eventually(t, func() error {
		if out := create(namespace); strings.Contains(out, "Warning: ") {
			return errors.New(out)
		}
		return nil
	})
}
