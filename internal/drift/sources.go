package drift

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/targets"
)

// Sources read facts, those of admission and two more.
type Sources struct {
	facts.Sources
	// Labels are those of a namespace: whether its service accounts give identities, and whether their profiles are applied.
	Labels func(ctx context.Context, namespace string) (map[string]string, error)
	// Spec reads a GMSACredentialSpec; one that does not exist is not an error.
	Spec func(ctx context.Context, name string) (gmsa.Spec, error)
}

// Runs reports whether a pod is decided on: one that has ended, or is about to, is not, nor is one of a kubelet's own files.
func Runs(pod *corev1.Pod) bool {
	_, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !mirrored && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Decide finds out what is known about a pod, and decides. An error is a fact that could not be read.
func (s Sources) Decide(ctx context.Context, pod *corev1.Pod) (Finding, error) {
	p := Pod{Request: pods.Request{Namespace: pod.Namespace, Pod: pod, Adapters: targets.For}}
	labels, err := s.Labels(ctx, pod.Namespace)
	if err != nil {
		return Finding{}, err
	}
	p.Request.NoIdentities = labels[v1alpha1.LabelNamespaceIdentities] != v1alpha1.NamespaceEnabled
	p.Request.Delivery = labels[v1alpha1.LabelNamespaceDelivery]
	p.Enabled = !p.Request.NoIdentities || labels[accounts.LabelNamespaceProfiles] == accounts.NamespaceEnabled
	if p.Enabled {
		if p.Denial, err = s.Gather(ctx, &p.Request); err != nil {
			return Finding{}, err
		}
	}
	names, denial := gmsa.Names(gmsa.References(pod, false))
	if denial != nil {
		return refused(denial), nil
	}
	if p.Specs, p.Uses, err = s.CredentialSpecs(ctx, pod, names); err != nil {
		return Finding{}, err
	}
	return Decide(p)
}

// CredentialSpecs finds out what is known of the GMSACredentialSpecs that a pod names, and whether its account may use them.
func (s Sources) CredentialSpecs(ctx context.Context, pod *corev1.Pod, names []string) (specs map[string]gmsa.Spec, uses map[string]authority.Answer, err error) {
	specs, uses = map[string]gmsa.Spec{}, map[string]authority.Answer{}
	for _, name := range names {
		if specs[name], err = s.Spec(ctx, name); err != nil {
			return nil, nil, err
		}
		question := authority.Use(authority.ServiceAccount(pod.Namespace, pod.Spec.ServiceAccountName, ""), authority.GMSACredentialSpecs, pod.Namespace, name)
		if uses[name], err = s.Right(ctx, question); err != nil {
			return nil, nil, err
		}
	}
	return specs, uses, nil
}
