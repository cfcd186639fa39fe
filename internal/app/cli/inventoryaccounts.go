package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// accountDelivery is a Secret that a service account needs, for an identity.
type accountDelivery struct {
	identity types.NamespacedName
	delivery *delivery
}

// findAccounts adds the Secrets that service accounts need and that are not there, and returns what each account needs, by
// its name.
func (f *inventory) findAccounts(ctx context.Context, workload *api, home string, bySecret map[types.NamespacedName]*delivery, ownerOf func(types.NamespacedName) *deliveredIdentity) (map[types.NamespacedName][]accountDelivery, error) {
	enabled, err := labelledNamespaces(ctx, workload)
	if err != nil {
		return nil, err
	}
	needs := map[types.NamespacedName][]accountDelivery{}
	look := func(account *corev1.ServiceAccount) {
		// An invalid annotation is reported when it is written, and when a pod is created.
		names, err := tokensecret.ParseIdentities(account.Annotations[v1alpha1.AnnotationAccountIdentities])
		if err != nil || !enabled(account.Namespace) {
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
			if d == nil {
				d = &delivery{Namespace: at.Namespace, Secret: at.Name, ServiceAccount: account.Name, Missing: true, Context: "-"}
				bySecret[at], owner.Deliveries = d, append(owner.Deliveries, d)
			}
			who := types.NamespacedName{Namespace: account.Namespace, Name: account.Name}
			needs[who] = append(needs[who], accountDelivery{identity, d})
		}
	}
	where, err := widest("service accounts", home, func(in string) error {
		return each(ctx, listing{client: workload.core, namespace: in, resource: "serviceaccounts"}, func(page *corev1.ServiceAccountList) {
			for i := range page.Items {
				look(&page.Items[i])
			}
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list service accounts: %w", err)
	}
	f.note(where.note)
	return needs, nil
}

// labelledNamespaces lists the namespaces whose service accounts give their pods identities. Without the right to list them, it assumes all:
// the annotation is refused elsewhere.
func labelledNamespaces(ctx context.Context, workload *api) (func(string) bool, error) {
	labelled := map[string]bool{}
	err := each(ctx, listing{client: workload.core, resource: "namespaces", labels: v1alpha1.LabelNamespaceIdentities + "=" + v1alpha1.NamespaceEnabled}, func(page *corev1.NamespaceList) {
		for i := range page.Items {
			labelled[page.Items[i].Name] = true
		}
	})
	if apierrors.IsForbidden(err) {
		return func(string) bool { return true }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return func(namespace string) bool { return labelled[namespace] }, nil
}

// concerns reports whether an Event on a service account is about an identity: it names it, or there is no other.
func (n accountDelivery) concerns(event *corev1.Event, all []accountDelivery) bool {
	return len(all) == 1 || concernsIdentity(event, n.identity, n.delivery.Secret)
}
