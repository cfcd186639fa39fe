package bindings

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Name is that of the ClusterRole of the agent, and of its RoleBinding in each namespace. deploy/base names it too.
const Name = "credence:agent:secrets"

// podsName is that of the ClusterRole by which the webhook counts pods, and of its RoleBindings.
const podsName = "credence:webhook:pods"

// The subjects, as in deploy/base.
const (
	systemNamespace = "credence-system"
	agentAccount    = "credence-agent"
	webhookAccount  = "credence-webhook"
)

// binding gives a service account of ours the role of that name in a namespace.
func binding(namespace, role, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account}},
	}
}

// right reports whether the agent's RoleBinding gives what it should.
func right(found *rbacv1.RoleBinding) bool {
	want := binding(found.Namespace, Name, agentAccount)
	return found.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(found.Subjects, want.Subjects)
}

// delivered reports whether tokens are delivered in a namespace. Those that hold the keys, or the cluster itself, never are.
func delivered(namespace metav1.Object) bool {
	name := namespace.GetName()
	return namespace.GetLabels()[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled &&
		name != systemNamespace && !strings.HasPrefix(name, "kube-")
}

func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
}
