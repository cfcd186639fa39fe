package securitycontext

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns what a kube-apiserver (v1.36) refuses in the Windows parts of a pod spec: gmsaCredentialSpecName,
// gmsaCredentialSpec, runAsUserName and hostProcess of the pod and of its init, regular and ephemeral containers, and what
// the pod's operating system rules out (windowsOptions of a Linux pod; of a Windows pod, what exists on Linux only; stop
// signals). Path is where the spec is, "spec" in a pod. Paths, types, values, messages and order are those of Kubernetes,
// which are an interface: people and programs look for them. Other faults of a pod are not checked, nor is what is refused only
// where kube-apiserver runs with --allow-privileged=false.
//
// The errors repeat the values that are wrong, a gmsaCredentialSpec of any size, too.
func Validate(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec == nil {
		return nil
	}
	regular, initial, ephemeral := regularContainers(spec, path), initContainers(spec, path), ephemeralContainers(spec, path)

	var errs field.ErrorList
	for _, c := range slices.Concat(regular, initial, ephemeral) {
		errs = append(errs, ValidateWindowsOptions(c.windowsOptions(), c.path.Child("securityContext", "windowsOptions"))...)
		errs = append(errs, validateStopSignal(c, spec.OS)...)
	}
	errs = append(errs, validateResources(spec, path)...)
	errs = append(errs, ValidateWindowsOptions(podWindowsOptions(spec), path.Child("securityContext", "windowsOptions"))...)

	started := slices.Concat(initial, regular, ephemeral)
	errs = append(errs, validateHostProcess(spec, started, path)...)
	errs = append(errs, validateOS(spec, started, path)...)
	return errs
}
