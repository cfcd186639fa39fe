// Package workload is the objects of the workload cluster, as the rooms of the agent share them: service accounts, namespaces, pods and
// their Secrets, Events, and the right to use an identity.
package workload

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Only the metadata of service accounts and namespaces is read and kept.

// NewAccount is a service account to be read into.
func NewAccount() *metav1.PartialObjectMetadata { return metadata("ServiceAccount") }

// NewNamespace is a namespace to be read into.
func NewNamespace() *metav1.PartialObjectMetadata { return metadata("Namespace") }

func metadata(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
}

// Enabled reports whether service accounts of a namespace may give their pods identities.
func Enabled(ctx context.Context, reader client.Reader, name string) (bool, error) {
	return enabled(ctx, reader, name, v1alpha1.LabelNamespaceIdentities)
}

// Delivers reports whether Secrets for context objects may be made in a namespace.
func Delivers(ctx context.Context, reader client.Reader, name string) (bool, error) {
	return enabled(ctx, reader, name, v1alpha1.LabelNamespaceContexts)
}

func enabled(ctx context.Context, reader client.Reader, name, label string) (bool, error) {
	namespace := NewNamespace()
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Labels[label] == v1alpha1.NamespaceEnabled && namespace.DeletionTimestamp == nil, nil
}

// Stores reports whether tokens come to the pods of a namespace in Secrets. byDefault is how they do where the namespace does not choose; empty: in
// Secrets. Of a value that the webhook refuses none are made.
func Stores(ctx context.Context, reader client.Reader, name, byDefault string) (bool, error) {
	namespace := NewNamespace()
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	chosen, present := namespace.Labels[v1alpha1.LabelNamespaceDelivery]
	if !present {
		chosen = cmp.Or(byDefault, v1alpha1.DeliverySecret)
	}
	return chosen == v1alpha1.DeliverySecret, nil
}

// AccountOf returns the service account that owns a Secret; false if it has no such owner.
func AccountOf(object metav1.Object) (types.NamespacedName, types.UID, bool) {
	for _, owner := range object.GetOwnerReferences() {
		if owner.APIVersion == "v1" && owner.Kind == "ServiceAccount" {
			return types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}, owner.UID, true
		}
	}
	return types.NamespacedName{}, "", false
}

// TokenSecrets returns the names of the agent's Secrets that a pod mounts.
func TokenSecrets(pod *corev1.Pod) []string {
	return slices.DeleteFunc(tokensecret.Mounted(pod), func(name string) bool { return !strings.HasPrefix(name, tokensecret.NamePrefix) })
}
