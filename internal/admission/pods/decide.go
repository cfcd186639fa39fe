package pods

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/target"
)

// Request is a pod that is to be admitted, and the state of the cluster about it.
type Request struct {
	// Namespace of the pod; that in its metadata may be empty.
	Namespace string
	Pod       *corev1.Pod
	// Ephemeral are the names of the ephemeral containers that are added to a pod which runs. It is nil when a pod is
	// created, which is all else that is decided on.
	Ephemeral []string
	// Account is the service account of the pod. A pod that runs may have outlived it.
	Account Account
	// Profile is that of the account. Its zero value is that of an account without one.
	Profile profile.Profile
	// NoIdentities is true in a namespace whose service accounts give no identities, so that only the profile is applied.
	NoIdentities bool
	// Delivery is how tokens come to the pods of the namespace: a value of LabelNamespaceDelivery; empty: by Secrets.
	Delivery string
	// RuntimeClassNodes is the node selector of the pod's RuntimeClass; needed only if NeedsRuntimeClass.
	RuntimeClassNodes map[string]string
	// Adapters finds the adapter of a type of target system.
	Adapters func(targetType string) target.Adapter
}

// Account is the service account of a pod.
type Account struct {
	// Name is empty for the pods of a kubelet's own files, which have none.
	Name   string
	Exists bool
	// Identities are those that it gives its pods, in the order of its annotation or its profile.
	Identities []Identity
}

// Identity is a workload identity of the pod's namespace, as its service account names it.
type Identity struct {
	Name             string
	Exists, Deleting bool
	// Type and ProviderConfig (JSON, or empty) are those of its target system.
	Type           string
	ProviderConfig []byte
	// Allowed reports whether the service account may use it; Detail is the authorizer's reason.
	Allowed bool
	Detail  string
}

// Decide admits a pod. The order is: what its profile fills in and refuses, which token Secrets it mounts, whether it may have its
// identities, whether they fit into it, and only then what is added.
func Decide(r Request) Result {
	if r.Account.Name != "" && !r.Account.Exists && r.Ephemeral == nil {
		return Result{Denial: accountMissing(r.Namespace, r.Account.Name)}
	}
	filled := Fill(r)
	if denial := r.Profile.Refuse(ofProfile(r, filled.Pod)); denial != nil {
		return Result{Denial: denial}
	}
	r.Pod = filled.Pod
	result := identities(r)
	if result.Denial == nil && len(filled.Patch) > 0 {
		result.Patch = append(filled.Patch, result.Patch...)
	}
	if r.NoIdentities && len(r.Profile.Spec.WorkloadIdentities) > 0 && r.Ephemeral == nil {
		result.Warnings = append(result.Warnings, noIdentities(r))
	}
	return result
}

// Fill returns the pod of a request with what its profile fills in.
func Fill(r Request) profile.Filled { return r.Profile.Fill(ofProfile(r, r.Pod)) }

// ofProfile is a pod as its profile decides about it.
func ofProfile(r Request, pod *corev1.Pod) profile.Pod {
	if !r.Profile.Exists {
		return profile.Pod{Pod: pod}
	}
	return profile.Pod{Pod: pod, OS: OS(pod, r.RuntimeClassNodes), Ephemeral: r.Ephemeral, Tokens: ownSecrets(r.Account)}
}

// identities decides about the workload identities of a pod.
func identities(r Request) Result {
	if denial := foreignSecrets(r); denial != nil {
		return Result{Denial: denial}
	}
	if len(r.Account.Identities) == 0 {
		return Result{}
	}
	settings, denial := settingsOf(r)
	if denial != nil {
		return Result{Denial: denial}
	}
	if r.Ephemeral != nil {
		return attach(r, settings)
	}
	return inject(r, settings)
}

// inject gives a new pod its identities.
func inject(r Request, s settings) Result {
	if denial := checkDelivery(r, s.os); denial != nil {
		return Result{Denial: denial}
	}
	var grants []grant
	for _, identity := range r.Account.Identities {
		grant, denial := grantOf(r, identity, s)
		if denial != nil {
			return Result{Denial: denial}
		}
		grants = append(grants, grant)
	}
	if denial := sharedVariables(grants, s.os); denial != nil {
		return Result{Denial: denial}
	}
	containers := s.without(podContainers(r.Pod))
	if len(containers) == 0 {
		return Result{}
	}
	var additions patch
	if denial := additions.volumes(r.Pod, grants); denial != nil {
		return Result{Denial: denial}
	}
	if denial := additions.files(r.Pod, grants); denial != nil {
		return Result{Denial: denial}
	}
	warnings, denial := additions.containers(r.Pod, containers, grants, s.os)
	if denial != nil {
		return Result{Denial: denial}
	}
	if r.Delivery != v1alpha1.DeliveryCSI { // the kubelet waits for the driver
		additions.gate(r.Pod)
	}
	return Result{Patch: additions.operations, Warnings: bounded(append(unread(r.Pod), warnings...))}
}

// leftOut begins a warning about an identity that an ephemeral container does not get.
const leftOut = "not added to the ephemeral container: "

// attach gives new ephemeral containers the identities that their pod has. The pod runs: one that it may not have any more is
// left out with a warning, so that debugging is not blocked.
func attach(r Request, s settings) Result {
	var grants []grant
	var warnings []string
	for _, identity := range r.Account.Identities {
		if !Carries(r.Pod, r.Account.Name, identity.Name) {
			continue
		}
		grant, denial := grantOf(r, identity, s)
		if denial != nil {
			warnings = append(warnings, leftOut+denial.Message)
			continue
		}
		grants = append(grants, grant)
	}
	if denial := sharedVariables(grants, s.os); denial != nil {
		return Result{Warnings: append(warnings, leftOut+denial.Message)}
	}
	var additions patch
	more, denial := additions.containers(r.Pod, s.without(ephemeralContainers(r.Pod, r.Ephemeral)), grants, s.os)
	if denial != nil {
		return Result{Denial: denial}
	}
	return Result{Patch: additions.operations, Warnings: append(warnings, more...)}
}
