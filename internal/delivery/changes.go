package delivery

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	profilesv1alpha1 "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/workload"
)

// IdentityChanged handles an identity that appeared, changed or went.
func (a *Agent) IdentityChanged(identity types.NamespacedName) {
	ctx := context.Background()
	if err := a.lookAtSecrets(ctx, identityIndex, identity); err != nil {
		return // not read yet: all will be looked at
	}
	var bindings []types.NamespacedName
	a.bindings.Each(func(binding *v1alpha1.CredentialsBinding) {
		if to := binding.WorkloadIdentityRef; to != nil && to.Namespace == identity.Namespace && to.Name == identity.Name {
			bindings = append(bindings, client.ObjectKeyFromObject(binding))
		}
	})
	for _, binding := range bindings {
		a.BindingChanged(binding)
	}
	list := accountList()
	if err := a.manager.GetCache().List(ctx, list, client.InNamespace(identity.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		if names, err := workload.Identities(ctx, a.manager.GetCache(), &list.Items[i]); err == nil && slices.Contains(names, identity.Name) {
			a.services.Add(client.ObjectKeyFromObject(&list.Items[i]), 0)
		}
	}
}

// BindingChanged handles a CredentialsBinding that appeared, changed or went.
func (a *Agent) BindingChanged(binding types.NamespacedName) {
	_ = a.lookAtSecrets(context.Background(), bindingIndex, binding) // not read yet: all will be looked at
}

// DeliveryChanged handles a delivery that appeared, changed or went.
func (a *Agent) DeliveryChanged(delivery *identityv1alpha1.ContextDelivery) {
	if secret := delivery.Spec.Secret; secret.Name != "" {
		a.lookAtDelivery(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
		return
	}
	a.wanted.Add(types.NamespacedName{Name: delivery.Name}, 0)
	a.lookAtMarked(func(secret *corev1.Secret) bool { return contexts.ObjectOf(secret) == delivery.Spec.ContextObject.UID })
}

// DeliveriesKnown handles that all deliveries have been read: Secrets that none of them needs go, and the others may have tokens.
func (a *Agent) DeliveriesKnown() { a.lookAtMarked(func(*corev1.Secret) bool { return true }) }

// lookAtMarked has those Secrets looked at that were made for deliveries.
func (a *Agent) lookAtMarked(concerned func(*corev1.Secret) bool) {
	var secrets corev1.SecretList
	if err := a.manager.GetCache().List(context.Background(), &secrets, client.UnsafeDisableDeepCopy); err != nil {
		return // not read yet: all will be looked at
	}
	for i := range secrets.Items {
		if contexts.Marked(&secrets.Items[i]) && concerned(&secrets.Items[i]) {
			a.lookAtDelivery(client.ObjectKeyFromObject(&secrets.Items[i]))
		}
	}
}

func (a *Agent) lookAtDelivery(secret types.NamespacedName) {
	a.wanted.Add(secret, 0)
	a.secrets.Add(secret, 0)
}

// lookAtSecrets has the Secrets looked at that name an object.
func (a *Agent) lookAtSecrets(ctx context.Context, index string, object types.NamespacedName) error {
	var secrets corev1.SecretList
	if err := a.manager.GetCache().List(ctx, &secrets, client.MatchingFields{index: object.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range secrets.Items {
		a.secrets.Add(client.ObjectKeyFromObject(&secrets.Items[i]), 0)
	}
	return nil
}

// namespaceServed handles a namespace whose Secrets can be read from now on: its service accounts have waited, and it may have lost
// its label meanwhile.
func (a *Agent) namespaceServed(name string) {
	a.served.Add(types.NamespacedName{Name: name}, 0)
	namespace := workload.NewNamespace()
	namespace.Name = name
	for _, request := range a.deliveriesIn(context.Background(), namespace) {
		a.lookAtDelivery(request.NamespacedName)
	}
	for _, request := range a.accountsIn(context.Background(), namespace) {
		a.services.Add(request.NamespacedName, 0)
	}
}

// KeysRevoked handles the revocation of keys.
func (a *Agent) KeysRevoked() {
	var secrets corev1.SecretList
	if err := a.manager.GetCache().List(context.Background(), &secrets, client.UnsafeDisableDeepCopy); err != nil {
		return // not read yet: all will be looked at
	}
	for i := range secrets.Items {
		a.secrets.Add(client.ObjectKeyFromObject(&secrets.Items[i]), 0)
	}
}

// retainEvery is how often namespaces that no Secret refers to any more are given up.
const retainEvery = 10 * time.Minute

func (a *Agent) retain(ctx context.Context) {
	ticker := time.NewTicker(retainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.retainNamespaces(ctx)
		}
	}
}

// retainNamespaces gives up the namespaces of the identity cluster that nothing refers to.
func (a *Agent) retainNamespaces(ctx context.Context) {
	var secrets corev1.SecretList
	if err := a.manager.GetCache().List(ctx, &secrets, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	wanted, bound := map[string]struct{}{}, map[string]struct{}{}
	for i := range secrets.Items {
		annotations := secrets.Items[i].Annotations
		if _, ok := annotations[v1alpha1.AnnotationBinding]; ok {
			bound[annotations[v1alpha1.AnnotationNamespace]] = struct{}{}
		} else {
			wanted[annotations[v1alpha1.AnnotationNamespace]] = struct{}{}
		}
	}
	a.bindings.Retain(func(namespace string) bool { _, ok := bound[namespace]; return ok })
	a.bindings.Each(func(binding *v1alpha1.CredentialsBinding) {
		if to := binding.WorkloadIdentityRef; to != nil {
			wanted[to.Namespace] = struct{}{}
		}
	})
	list := accountList()
	if err := a.manager.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		if _, ok := list.Items[i].Annotations[v1alpha1.AnnotationAccountIdentities]; ok {
			wanted[list.Items[i].Namespace] = struct{}{}
		}
	}
	var profiles profilesv1alpha1.ServiceAccountProfileList
	if err := a.manager.GetCache().List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range profiles.Items {
		if workload.Lists(&profiles.Items[i]) {
			wanted[profiles.Items[i].Namespace] = struct{}{}
		}
	}
	a.identities.Retain(func(namespace string) bool { _, ok := wanted[namespace]; return ok })
}
