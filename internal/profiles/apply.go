package profiles

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// ApplyStatus makes the fields of status those that a field manager has in the status of a profile: each controller has one of its own, and
// leaves alone what the others write. A profile that was deleted, or created again, meanwhile is left alone.
func ApplyStatus(ctx context.Context, c client.Client, profile *accounts.ServiceAccountProfile, manager string, status accounts.ServiceAccountProfileStatus) error {
	return client.IgnoreNotFound(apply(ctx, c, profile, "", manager, status))
}

// ApplyStatusUnchanged is ApplyStatus for what depends on all of the profile: one that has changed meanwhile, or was deleted, is an error.
func ApplyStatusUnchanged(ctx context.Context, c client.Client, profile *accounts.ServiceAccountProfile, manager string, status accounts.ServiceAccountProfileStatus) error {
	return apply(ctx, c, profile, profile.ResourceVersion, manager, status)
}

func apply(ctx context.Context, c client.Client, profile *accounts.ServiceAccountProfile, version, manager string, status accounts.ServiceAccountProfileStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode the status of profile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(accounts.SchemeGroupVersion.WithKind("ServiceAccountProfile"))
	object.SetNamespace(profile.Namespace)
	object.SetName(profile.Name)
	object.SetUID(profile.UID)
	object.SetResourceVersion(version)
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the status of profile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	return nil
}

// Metadata is an object of a core kind to be read into: only the metadata is read and kept.
func Metadata(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
}

// Report writes an Event where a condition has another status or reason than before, and returns whether it did. A condition that is good
// from the beginning is not reported.
func Report(events record.EventRecorder, profile *accounts.ServiceAccountProfile, before *metav1.Condition, after metav1.Condition, good bool) bool {
	if before == nil && good || before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return false
	}
	kind := corev1.EventTypeWarning
	if good {
		kind = corev1.EventTypeNormal
	}
	events.Event(profile, kind, after.Reason, after.Message)
	return true
}
