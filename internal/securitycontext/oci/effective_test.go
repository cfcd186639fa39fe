package oci_test

import corev1 "k8s.io/api/core/v1"

// effective has as much of the effective security context as the cases need: the container's over the pod's, with name and
// contents of a gMSA as a pair.
func effective(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) *corev1.SecurityContext {
	result := &corev1.SecurityContext{}
	if container != nil {
		result = container.DeepCopy()
	}
	if pod == nil {
		return result
	}
	pod = pod.DeepCopy()
	inherit(&result.RunAsUser, pod.RunAsUser)
	inherit(&result.RunAsGroup, pod.RunAsGroup)
	inherit(&result.RunAsNonRoot, pod.RunAsNonRoot)
	inherit(&result.SELinuxOptions, pod.SELinuxOptions)
	inherit(&result.SeccompProfile, pod.SeccompProfile)
	inherit(&result.AppArmorProfile, pod.AppArmorProfile)
	if own := result.WindowsOptions; own == nil || pod.WindowsOptions == nil {
		inherit(&result.WindowsOptions, pod.WindowsOptions)
	} else {
		if own.GMSACredentialSpecName == nil && own.GMSACredentialSpec == nil {
			own.GMSACredentialSpecName, own.GMSACredentialSpec = pod.WindowsOptions.GMSACredentialSpecName, pod.WindowsOptions.GMSACredentialSpec
		}
		inherit(&own.RunAsUserName, pod.WindowsOptions.RunAsUserName)
		inherit(&own.HostProcess, pod.WindowsOptions.HostProcess)
	}
	return result
}

func inherit[T any](field **T, from *T) {
	if *field == nil {
		*field = from
	}
}
