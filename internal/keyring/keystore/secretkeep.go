package keystore

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// WrittenBack is the annotation of a Secret that programs make again, with the ring, if it is deleted. The admission policy
// credence-keys lets no other one be deleted.
const WrittenBack = "identity.credence.dev/written-back"

// kept are the annotations of the Secret. By those of others, a tool does not delete what has left its manifests: the manifests of
// earlier versions had the Secret.
func kept() map[string]string {
	return map[string]string{
		WrittenBack:                          "true",
		"helm.sh/resource-policy":            "keep",
		"kustomize.toolkit.fluxcd.io/prune":  "disabled",
		"argocd.argoproj.io/sync-options":    "Prune=false",
		"argocd.argoproj.io/compare-options": "IgnoreExtraneous",
	}
}

// lastApplied is the annotation, and applySet the label, by which kubectl apply --prune finds what has left its manifests.
const (
	lastApplied = corev1.LastAppliedConfigAnnotation
	applySet    = "applyset.kubernetes.io/part-of"
)

// Keep makes the Secret without a ring where it is missing, and takes it from the tools that might delete it. It needs create (of this
// name: it is made by server-side apply), patch, get and update.
func (s *Secret) Keep(ctx context.Context) error {
	stored, err := s.get(ctx, "keep")
	if err != nil {
		return err
	}
	if stored == nil {
		made := corev1apply.Secret(s.name, s.namespace).WithType(SecretType).WithLabels(map[string]string{partOfLabel: partOf}).WithAnnotations(kept())
		if _, err := s.client.Apply(silent(ctx), made, metav1.ApplyOptions{FieldManager: fieldManager}); err != nil {
			return s.failed(ctx, "make", err)
		}
		return nil
	}
	marked := stored.DeepCopy()
	if marked.Annotations == nil {
		marked.Annotations = map[string]string{}
	}
	maps.Copy(marked.Annotations, kept())
	delete(marked.Annotations, lastApplied)
	delete(marked.Labels, applySet)
	if maps.Equal(marked.Annotations, stored.Annotations) && len(marked.Labels) == len(stored.Labels) {
		return nil
	}
	if _, err := s.client.Update(silent(ctx), marked, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return s.failed(ctx, fmt.Sprintf("mark with %s", WrittenBack), err)
	}
	return nil
}
