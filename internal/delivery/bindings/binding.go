package bindings

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Name is that of the ClusterRole, and of its RoleBinding in each namespace. deploy/base names it too.
const Name = "credence:agent:secrets"

// The agent, as in deploy/base.
const (
	agentNamespace = "credence-system"
	agentAccount   = "credence-agent"
)

// wanted is the RoleBinding of a namespace.
func wanted(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: agentNamespace, Name: agentAccount}},
	}
}

// right reports whether a RoleBinding gives what it should.
func right(binding *rbacv1.RoleBinding) bool {
	want := wanted(binding.Namespace)
	return binding.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(binding.Subjects, want.Subjects)
}

// delivered reports whether tokens are delivered in a namespace. Those that hold the keys, or the cluster itself, never are.
func delivered(namespace metav1.Object) bool {
	name := namespace.GetName()
	return namespace.GetLabels()[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled &&
		name != agentNamespace && !strings.HasPrefix(name, "kube-")
}

func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
}
