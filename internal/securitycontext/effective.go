// Package securitycontext holds the rules of Kubernetes for security contexts, Windows ones above all. In go security contexts
// and pod specs of the API; out come the context that a container really has (Effective), and the refusals of an API server
// (Validate). It makes no requests, and never changes its input.
package securitycontext

import corev1 "k8s.io/api/core/v1"

// Effective returns the security context that a container has once its pod's is taken into account: field by field, what the
// container sets, otherwise what the pod sets. A structure (seLinuxOptions, capabilities, …) is one field, except for
// windowsOptions, which are merged field by field, too. Of these gmsaCredentialSpecName and gmsaCredentialSpec travel as a
// pair: a container that sets either has both from itself, so that no name is ever joined with the contents of another.
//
// Both arguments may be nil. The result is never nil, and shares no memory with them.
//
// Up to two fields the result is that of DetermineEffectiveSecurityContext in k8s.io/kubernetes/pkg/securitycontext (v1.36).
// seccompProfile and appArmorProfile, container over pod, the kubelet finds elsewhere; here they are in the result. The
// AppArmor annotations from before Kubernetes 1.30 are not read. A field without a counterpart in a container's context (fsGroup,
// sysctls, supplementalGroups, …) stays the pod's.
func Effective(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) *corev1.SecurityContext {
	effective := container.DeepCopy()
	if effective == nil {
		effective = &corev1.SecurityContext{}
	}
	if pod == nil {
		return effective
	}
	pod = pod.DeepCopy()

	inherit(&effective.SELinuxOptions, pod.SELinuxOptions)
	inherit(&effective.RunAsUser, pod.RunAsUser)
	inherit(&effective.RunAsGroup, pod.RunAsGroup)
	inherit(&effective.RunAsNonRoot, pod.RunAsNonRoot)
	inherit(&effective.SeccompProfile, pod.SeccompProfile)
	inherit(&effective.AppArmorProfile, pod.AppArmorProfile)

	inherit(&effective.WindowsOptions, pod.WindowsOptions)
	if pod.WindowsOptions != nil {
		inheritWindows(effective.WindowsOptions, pod.WindowsOptions)
	}
	return effective
}

func inheritWindows(effective, pod *corev1.WindowsSecurityContextOptions) {
	if !usesGMSA(effective) {
		effective.GMSACredentialSpecName, effective.GMSACredentialSpec = pod.GMSACredentialSpecName, pod.GMSACredentialSpec
	}
	inherit(&effective.RunAsUserName, pod.RunAsUserName)
	inherit(&effective.HostProcess, pod.HostProcess)
}

// inherit sets a field that is not set.
func inherit[T any](field **T, from *T) {
	if *field == nil {
		*field = from
	}
}

func usesGMSA(o *corev1.WindowsSecurityContextOptions) bool {
	return o.GMSACredentialSpecName != nil || o.GMSACredentialSpec != nil
}
