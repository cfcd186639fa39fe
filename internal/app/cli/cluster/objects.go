package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/objects"
	api "github.com/credence-id/credence/internal/cluster"
)

const (
	identityAPI = "/apis/identity.credence.dev/v1alpha1"
	rbacAPI     = "/apis/rbac.authorization.k8s.io/v1"

	// readIdentities is the role of agents in each namespace whose identities they have.
	readIdentities = "credence:agent:identities"
)

// member is a workload cluster as the identity cluster knows it.
type member struct {
	name         string
	namespaces   []string
	fromContexts bool
}

func (m member) agent() string   { return m.name + "-agent" }
func (m member) webhook() string { return m.name + "-webhook" }

func (m member) place() api.Place {
	return api.Place{API: identityAPI, Resource: "workloadclusters", Name: m.name}
}

// userOf is the name of the user that a service account is.
func userOf(account string) string {
	return "system:serviceaccount:" + v1alpha1.WorkloadClusters + ":" + account
}

// home is the namespace of the accounts of all clusters.
func home() objects.Object { return namespaceOf(v1alpha1.WorkloadClusters) }

func namespaceOf(name string) objects.Object {
	return objects.Object{
		At: api.Place{Resource: "namespaces", Name: name}, Kind: "namespace",
		Content: &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}},
		Stored:  &corev1.Namespace{}, Fit: unchanged,
	}
}

func unchanged() (bool, error) { return false, nil }

// objects are in the order of their writing: what limits is first, what gives rights is last.
func (m member) objects() []objects.Object {
	all := []objects.Object{m.cluster(), m.account(m.agent()), m.account(m.webhook()), m.secret(), objects.Role(m.renewal())}
	all = append(all, objects.Binding(binding(v1alpha1.WorkloadClusters, m.agent(), "Role", m.name)))
	for _, namespace := range m.namespaces {
		all = append(all, m.bindings(namespace)...)
	}
	return all
}

// bindings are the rights in a namespace whose identities the cluster may have.
func (m member) bindings(namespace string) []objects.Object {
	return []objects.Object{
		objects.Binding(binding(namespace, m.agent(), "ClusterRole", readIdentities)),
		objects.Binding(binding(namespace, m.webhook(), "ClusterRole", "credence:identity-reader")),
	}
}

// cluster has this user and these namespaces at least. The webhook's account is not a user, as it needs no tokens: accounts of the namespace that are
// not in a WorkloadCluster get none.
func (m member) cluster() objects.Object {
	wanted, stored := &v1alpha1.WorkloadCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec: v1alpha1.WorkloadClusterSpec{
			Users:      []string{userOf(m.agent())},
			Identities: v1alpha1.WorkloadClusterIdentities{Namespaces: m.namespaces, FromContexts: m.fromContexts},
		},
	}, &v1alpha1.WorkloadCluster{}
	return objects.Object{
		At: m.place(), Kind: "workloadcluster." + v1alpha1.GroupName, Content: wanted, Stored: stored,
		Fit: func() (bool, error) {
			spec, before := &stored.Spec, stored.Spec.DeepCopy()
			merge(&spec.Users, wanted.Spec.Users)
			spec.Users = slices.DeleteFunc(spec.Users, func(user string) bool { return user == userOf(m.webhook()) })
			merge(&spec.Identities.Namespaces, m.namespaces)
			spec.Identities.FromContexts = spec.Identities.FromContexts || m.fromContexts
			return !equality.Semantic.DeepEqual(before, spec), nil
		},
	}
}

// merge adds what is missing.
func merge(to *[]string, values []string) {
	for _, value := range values {
		if !slices.Contains(*to, value) {
			*to = append(*to, value)
		}
	}
}

func (m member) account(name string) objects.Object {
	automount := false
	return objects.Object{
		At: api.Place{Namespace: v1alpha1.WorkloadClusters, Resource: "serviceaccounts", Name: name}, Kind: "serviceaccount",
		Content: &corev1.ServiceAccount{
			TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta:                   metav1.ObjectMeta{Namespace: v1alpha1.WorkloadClusters, Name: name},
			AutomountServiceAccountToken: &automount,
		},
		Stored: &corev1.ServiceAccount{}, Fit: unchanged,
	}
}

// secret is what all credentials of the cluster are bound to. It holds nothing.
func (m member) secret() objects.Object {
	return objects.Object{
		At: api.Place{Namespace: v1alpha1.WorkloadClusters, Resource: "secrets", Name: m.name}, Kind: "secret",
		Content: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.WorkloadClusters, Name: m.name},
			Type:       corev1.SecretTypeOpaque,
		},
		Stored: &corev1.Secret{}, Fit: unchanged,
	}
}

// renewal lets the agent renew its own credentials and those of the webhook beside it.
func (m member) renewal() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.WorkloadClusters, Name: m.name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{m.agent(), m.webhook()}, Verbs: []string{"create"}}},
	}
}

func binding(namespace, account, kind, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bindingName(account)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.WorkloadClusters, Name: account}},
	}
}

// bindingName is that of the RoleBinding of an account, in each namespace.
func bindingName(account string) string { return "credence:cluster:" + account }
