// Package rights is the rule of which rights agent and webhook have in a namespace where tokens are delivered. In go namespaces and
// RoleBindings, out come the RoleBindings that are needed, and whether one gives what it should. It requests nothing.
package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
)

// The ClusterRoles, and their RoleBindings in each namespace. deploy/base names them too.
const (
	AgentSecrets = "credence:agent:secrets"
	WebhookPods  = "credence:webhook:pods" // by which the webhook counts pods
	// RegistrySecrets is that by which credence-registry has the Secrets of a namespace. An admin binds it.
	RegistrySecrets = "credence:registry:secrets"
	// AgentIdentities is that by which the agent has tokens of identities. An admin binds it, by a RoleBinding with the name AgentAccount.
	AgentIdentities = "credence:agent:identities"
)

// The service accounts, as in deploy/base.
const (
	SystemNamespace = "credence-system"
	NodeNamespace   = "credence-node"
	AgentAccount    = "credence-agent"
	RegistryAccount = "credence-registry"
	webhookAccount  = "credence-webhook"
)

// Agent is the agent as a user.
func Agent() authority.Subject { return authority.ServiceAccount(SystemNamespace, AgentAccount, "") }

// OfAgent is the RoleBinding by which the agent has the Secrets of a namespace.
func OfAgent(namespace string) *rbacv1.RoleBinding {
	return binding(namespace, AgentSecrets, AgentAccount)
}

// OfWebhook is the RoleBinding by which the webhook lists the pods of a namespace.
func OfWebhook(namespace string) *rbacv1.RoleBinding {
	return binding(namespace, WebhookPods, webhookAccount)
}

// OfRegistry is the RoleBinding by which credence-registry has the Secrets of a namespace.
func OfRegistry(namespace string) *rbacv1.RoleBinding {
	return binding(namespace, RegistrySecrets, RegistryAccount)
}

func binding(namespace, role, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: SystemNamespace, Name: account}},
	}
}

// LetDeliver reports whether the agent's RoleBinding of a namespace gives what it should.
func LetDeliver(found *rbacv1.RoleBinding) bool {
	return Gives(found, OfAgent(found.Namespace))
}

// Gives reports whether a RoleBinding gives what another one does.
func Gives(found, want *rbacv1.RoleBinding) bool {
	return found.RoleRef == want.RoleRef && slices.Equal(found.Subjects, want.Subjects)
}

// Delivered reports whether tokens are delivered in a namespace: for its service accounts and users, or for context objects.
func Delivered(namespace metav1.Object) bool {
	labels := namespace.GetLabels()
	return (labels[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled || labels[v1alpha1.LabelNamespaceContexts] == v1alpha1.NamespaceEnabled) &&
		!Reserved(namespace.GetName())
}

// Reserved reports whether a namespace holds the keys, or the cluster itself: no tokens are delivered there, whatever its label.
func Reserved(namespace string) bool {
	return namespace == SystemNamespace || strings.HasPrefix(namespace, "kube-")
}
