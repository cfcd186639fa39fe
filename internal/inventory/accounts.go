package inventory

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/tokensecret"
)

// accountDelivery is a Secret that a service account needs, for an identity.
type accountDelivery struct {
	identity types.NamespacedName
	delivery *Delivery
}

// findAccounts adds the Secrets that service accounts need and that are not there, and returns what each account needs, by
// its name.
func (f *Report) findAccounts(ctx context.Context, workload *cluster.API, home string, bySecret map[types.NamespacedName]*Delivery, ownerOf func(types.NamespacedName) *Identity) (map[types.NamespacedName][]accountDelivery, error) {
	enabled, stored, err := labelledNamespaces(ctx, workload)
	if err != nil {
		return nil, err
	}
	lists, err := f.readProfiles(ctx, workload, home)
	if err != nil {
		return nil, err
	}
	needs := map[types.NamespacedName][]accountDelivery{}
	look := func(account *corev1.ServiceAccount) {
		who := types.NamespacedName{Namespace: account.Namespace, Name: account.Name}
		// An invalid list is reported when it is written, and when a pod is created.
		names, denial := pods.NamesOf(account, lists[who])
		if denial != nil || !enabled(account.Namespace) {
			return
		}
		for _, name := range names {
			identity := types.NamespacedName{Namespace: account.Namespace, Name: name}
			owner := ownerOf(identity)
			if owner == nil {
				continue
			}
			at := types.NamespacedName{Namespace: account.Namespace, Name: tokensecret.NameFor(account.Name, name)}
			d := bySecret[at]
			if d == nil && !stored(account.Namespace) {
				continue
			}
			if d == nil {
				d = &Delivery{Namespace: at.Namespace, Secret: at.Name, ServiceAccount: account.Name, Missing: true, Context: "-"}
				bySecret[at], owner.Deliveries = d, append(owner.Deliveries, d)
			}
			needs[who] = append(needs[who], accountDelivery{identity, d})
		}
	}
	where, err := cluster.Widest("service accounts", home, func(in string) error {
		return cluster.Each(ctx, workload, cluster.Listing{Namespace: in, Resource: "serviceaccounts"}, look)
	})
	if err != nil {
		return nil, fmt.Errorf("list service accounts: %w", err)
	}
	f.looked("service accounts", where)
	return needs, nil
}

// readProfiles returns the profiles that list identities in place of an annotation, by service account.
func (f *Report) readProfiles(ctx context.Context, workload *cluster.API, home string) (map[types.NamespacedName]profile.Profile, error) {
	lists := map[types.NamespacedName]profile.Profile{}
	where, err := cluster.Widest("ServiceAccountProfiles", home, func(in string) error {
		return cluster.Each(ctx, workload, cluster.Listing{API: "/apis/" + accounts.SchemeGroupVersion.String(), Namespace: in, Resource: "serviceaccountprofiles"}, func(p *accounts.ServiceAccountProfile) {
			if names := p.Spec.WorkloadIdentities; names != nil {
				lists[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = profile.Profile{Namespace: p.Namespace, Name: p.Name, Exists: true, Spec: accounts.ServiceAccountProfileSpec{WorkloadIdentities: names}}
			}
		})
	})
	if err != nil && !apierrors.IsNotFound(err) { // a cluster without profiles
		return nil, fmt.Errorf("list ServiceAccountProfiles: %w", err)
	}
	f.looked("ServiceAccountProfiles", where)
	return lists, nil
}

// labelledNamespaces lists the namespaces whose service accounts give their pods identities, and those of them whose pods have Secrets. Without the
// right to list them, it assumes all: the annotation is refused elsewhere.
func labelledNamespaces(ctx context.Context, workload *cluster.API) (enabled, stored func(string) bool, err error) {
	labelled, volumes := map[string]bool{}, map[string]bool{}
	err = cluster.Each(ctx, workload, cluster.Listing{Resource: "namespaces", Labels: v1alpha1.LabelNamespaceIdentities + "=" + v1alpha1.NamespaceEnabled},
		func(namespace *corev1.Namespace) {
			labelled[namespace.Name] = true
			volumes[namespace.Name] = namespace.Labels[v1alpha1.LabelNamespaceDelivery] == v1alpha1.DeliveryCSI
		})
	stored = func(namespace string) bool { return !volumes[namespace] }
	if apierrors.IsForbidden(err) {
		return func(string) bool { return true }, stored, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list namespaces: %w", err)
	}
	return func(namespace string) bool { return labelled[namespace] }, stored, nil
}
