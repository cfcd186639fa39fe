package accounts

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// MakerRole is the ClusterRole of users who make accounts in a namespace: they may use its accounts and identities, and so may give that right.
const MakerRole = "credence:accounts:maker"

// Namespace is what an admin sets up once, so that a team can make accounts.
type Namespace struct {
	Name       string
	AccountUse string // audit, warn or enforce; empty: as it is
	Profiles   bool   // with the label of profiles; false: as it is
	Agent      rbacv1.Subject
	Makers     []rbacv1.Subject
}

// SetLabels sets the labels of a stored namespace, and reports whether that was a change. All else stays as it is.
func (n Namespace) SetLabels(stored map[string]any) (changed bool) {
	labels := within(within(stored, "metadata"), "labels")
	wanted := map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	if n.AccountUse != "" {
		wanted[access.ModeLabel] = n.AccountUse
	}
	if n.Profiles {
		wanted[profiles.LabelNamespaceProfiles] = profiles.NamespaceEnabled
	}
	for name, value := range wanted {
		if labels[name] != value {
			labels[name], changed = value, true
		}
	}
	return changed
}

// Manifest is the namespace, for Git.
func (n Namespace) Manifest() map[string]any {
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.Name}}
	n.SetLabels(namespace)
	return namespace
}

// Bindings let the agent have tokens of the identities, and the makers make accounts.
func (n Namespace) Bindings() []*rbacv1.RoleBinding {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: n.Name, Name: name} }
	bindings := []*rbacv1.RoleBinding{binding(meta(rights.AgentAccount), "ClusterRole", rights.AgentIdentities, n.Agent)}
	if len(n.Makers) > 0 {
		bindings = append(bindings, binding(meta(MakerRole), "ClusterRole", MakerRole, n.Makers...))
	}
	return bindings
}
