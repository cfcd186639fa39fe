package nodereview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext"
)

// decide gives a verdict on a pod as it is stored. An ephemeral container is decided on by itself, as at admission: the others run.
func (r *REST) decide(ctx context.Context, pod *corev1.Pod, spec identityv1alpha1.NodeReviewSpec) (identityv1alpha1.NodeReviewStatus, error) {
	var ephemeral, covered []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		covered = append(covered, c.Name)
	}
	if slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == spec.Container }) {
		ephemeral = []string{spec.Container}
		covered = ephemeral
	} else {
		own := *pod
		own.Spec.EphemeralContainers = nil
		pod = &own
	}
	if spec.Container != "" && !slices.Contains(covered, spec.Container) {
		return identityv1alpha1.NodeReviewStatus{Reason: fmt.Sprintf("the pod has no container %q", spec.Container)}, nil
	}
	denial, err := r.lacking(ctx, pod, ephemeral)
	if err != nil {
		return identityv1alpha1.NodeReviewStatus{}, err
	}
	if denial != nil {
		return identityv1alpha1.NodeReviewStatus{Reason: denial.Message}, nil
	}
	reason, err := r.accounts(ctx, pod)
	if err != nil {
		return identityv1alpha1.NodeReviewStatus{}, err
	}
	if reason == "" {
		reason = atRuntime(pod, spec)
	}
	if reason != "" {
		return identityv1alpha1.NodeReviewStatus{Reason: reason}, nil
	}
	return identityv1alpha1.NodeReviewStatus{Allowed: true, Containers: covered}, nil
}

// lacking is what a pod lacks that the profile of its account wants, with mode Enforce: of BlockNew pods that run are left, and Secrets are mounted
// before a runtime creates anything.
func (r *REST) lacking(ctx context.Context, pod *corev1.Pod, ephemeral []string) (*decision.Denial, error) {
	labels, err := r.Sources.Labels(ctx, pod.Namespace)
	if err != nil {
		return nil, err
	}
	if labels[accounts.LabelNamespaceProfiles] != accounts.NamespaceEnabled && labels[v1alpha1.LabelNamespaceIdentities] != v1alpha1.NamespaceEnabled {
		return nil, nil
	}
	request := pods.Request{Namespace: pod.Namespace, Pod: pod, Ephemeral: ephemeral, NoIdentities: true}
	if denial, err := r.Sources.Gather(ctx, &request); denial != nil || err != nil {
		return denial, err
	}
	p := request.Profile
	p.Spec.Secrets, p.Spec.OnChange = nil, ""
	if !p.Enforces() {
		return nil, nil
	}
	return p.Refuse(profile.Pod{Pod: pod, OS: pods.OS(pod, request.RuntimeClassNodes), Ephemeral: ephemeral}), nil
}

// accounts is why a pod would not be admitted with its GMSACredentialSpecs, or what of them is not as their objects have it; empty if neither.
func (r *REST) accounts(ctx context.Context, pod *corev1.Pod) (string, error) {
	names, denial := gmsa.Names(gmsa.References(pod, false))
	if denial != nil {
		return denial.Message, nil
	}
	p := drift.Pod{Request: pods.Request{Namespace: pod.Namespace, Pod: pod}}
	var err error
	if p.Specs, p.Uses, err = r.Sources.CredentialSpecs(ctx, pod, names); err != nil {
		return "", err
	}
	finding := drift.Accounts(p)
	switch {
	case finding.State == drift.Current:
		return "", nil
	case finding.Reason != "":
		return finding.Reason, nil
	}
	return fmt.Sprintf("%s: has %s, and the GMSACredentialSpec has %s: create the pod again", finding.Field, cmp.Or(finding.Has, "nothing"), finding.Wants), nil
}

// atRuntime is why a container may not have the credential spec that a runtime is to give it. That of the pod is its object's by now.
func atRuntime(pod *corev1.Pod, spec identityv1alpha1.NodeReviewSpec) string {
	if spec.CredentialSpec == "" {
		return ""
	}
	var own *corev1.SecurityContext
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == spec.Container {
			own = c.SecurityContext
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == spec.Container {
			own = c.SecurityContext
		}
	}
	contents := ""
	if options := securitycontext.Effective(pod.Spec.SecurityContext, own).WindowsOptions; options != nil {
		contents = ptr.Deref(options.GMSACredentialSpec, "")
	}
	if contents == "" || gmsa.Same(spec.CredentialSpec, contents) != nil {
		return fmt.Sprintf("container %q has a credential spec at the container runtime that is not the one of its pod", spec.Container)
	}
	return ""
}
