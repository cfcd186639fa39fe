package securitycontext

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Gates are the feature gates of windowsOptions. Kubernetes has had all three on for good since 1.18, 1.18 and 1.26.
type Gates struct {
	// WindowsGMSA allows gmsaCredentialSpecName and gmsaCredentialSpec.
	WindowsGMSA bool
	// WindowsRunAsUserName allows runAsUserName.
	WindowsRunAsUserName bool
	// WindowsHostProcess allows hostProcess. It is WindowsHostProcessContainers in Kubernetes.
	WindowsHostProcess bool
}

// gatedField is what one gate governs.
type gatedField struct {
	on    bool
	used  func(*corev1.WindowsSecurityContextOptions) bool
	empty func(*corev1.WindowsSecurityContextOptions)
}

func (g Gates) fields() []gatedField {
	return []gatedField{
		{g.WindowsGMSA, usesGMSA, func(o *corev1.WindowsSecurityContextOptions) {
			o.GMSACredentialSpecName, o.GMSACredentialSpec = nil, nil
		}},
		{g.WindowsRunAsUserName,
			func(o *corev1.WindowsSecurityContextOptions) bool { return o.RunAsUserName != nil },
			func(o *corev1.WindowsSecurityContextOptions) { o.RunAsUserName = nil }},
		{g.WindowsHostProcess,
			func(o *corev1.WindowsSecurityContextOptions) bool { return o.HostProcess != nil },
			func(o *corev1.WindowsSecurityContextOptions) { o.HostProcess = nil }},
	}
}

// DropDisabled empties the fields of a pod spec whose gate is off, in the pod and all of its containers. Old is the spec that
// is stored, nil on creation: a gate whose fields it uses anywhere, be it one of two and with an empty value, is as good as on,
// so that objects stay as they are while gates are switched and servers of two versions run side by side.
//
// The pod is changed in place; callers that need the original make a deep copy first. Old is never changed, and may be the same
// object. As in Kubernetes, windowsOptions and securityContext that become empty stay as empty structures: a Linux pod with
// {} is refused still. Other than Kubernetes in its time, the first two gates see ephemeral containers, too.
func DropDisabled(gates Gates, pod, old *corev1.PodSpec) {
	ofPod, ofOld := allWindowsOptions(pod), allWindowsOptions(old)
	for _, f := range gates.fields() {
		if f.on || slices.ContainsFunc(ofOld, f.used) {
			continue
		}
		for _, options := range ofPod {
			f.empty(options)
		}
	}
}

// allWindowsOptions are those of the pod and its containers that are not nil.
func allWindowsOptions(spec *corev1.PodSpec) []*corev1.WindowsSecurityContextOptions {
	if spec == nil {
		return nil
	}
	found := []*corev1.WindowsSecurityContextOptions{podWindowsOptions(spec)}
	for _, c := range slices.Concat(regularContainers(spec, nil), initContainers(spec, nil), ephemeralContainers(spec, nil)) {
		found = append(found, c.windowsOptions())
	}
	return slices.DeleteFunc(found, func(o *corev1.WindowsSecurityContextOptions) bool { return o == nil })
}
