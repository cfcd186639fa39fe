package securitycontext

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateOS holds a pod to its spec.os. A pod without one may set anything: it is not known where it will run.
func validateOS(spec *corev1.PodSpec, containers []container, path *field.Path) field.ErrorList {
	if spec.OS == nil {
		return nil
	}
	switch spec.OS.Name {
	case corev1.Linux:
		return linuxPod(spec, containers, path)
	case corev1.Windows:
		return windowsPod(spec, containers, path)
	case "":
		return field.ErrorList{field.Required(path.Child("os", "name"), "")}
	default:
		return field.ErrorList{field.NotSupported(path.Child("os"), spec.OS.Name, []corev1.OSName{corev1.Linux, corev1.Windows})}
	}
}

// linuxPod refuses windowsOptions, empty ones too.
func linuxPod(spec *corev1.PodSpec, containers []container, path *field.Path) field.ErrorList {
	const message = "windows options cannot be set for a linux pod"
	var errs field.ErrorList
	if podWindowsOptions(spec) != nil {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), message))
	}
	for _, c := range containers {
		if c.windowsOptions() != nil {
			errs = append(errs, field.Forbidden(c.path.Child("securityContext", "windowsOptions"), message))
		}
	}
	return errs
}

// setting is a field, and whether it is set.
type setting struct {
	path *field.Path
	set  bool
}

// windowsPod refuses what exists on Linux only, whatever its value: false, 0 and {} too. runAsNonRoot exists on both.
func windowsPod(spec *corev1.PodSpec, containers []container, path *field.Path) field.ErrorList {
	settings := linuxSettings(spec, path)
	for _, c := range containers {
		if c.SecurityContext != nil {
			settings = append(settings, linuxContainerSettings(c.SecurityContext, c.path.Child("securityContext"))...)
		}
	}
	var errs field.ErrorList
	for _, s := range settings {
		if s.set {
			errs = append(errs, field.Forbidden(s.path, "cannot be set for a windows pod"))
		}
	}
	return errs
}

func linuxSettings(spec *corev1.PodSpec, path *field.Path) []setting {
	pod, at := cmp.Or(spec.SecurityContext, &corev1.PodSecurityContext{}), path.Child("securityContext")
	return []setting{
		{at.Child("appArmorProfile"), pod.AppArmorProfile != nil},
		{at.Child("seLinuxOptions"), pod.SELinuxOptions != nil},
		{at.Child("seccompProfile"), pod.SeccompProfile != nil},
		{at.Child("fsGroup"), pod.FSGroup != nil},
		{at.Child("fsGroupChangePolicy"), pod.FSGroupChangePolicy != nil},
		{at.Child("sysctls"), len(pod.Sysctls) > 0},
		{at.Child("runAsUser"), pod.RunAsUser != nil},
		{at.Child("runAsGroup"), pod.RunAsGroup != nil},
		{at.Child("supplementalGroups"), pod.SupplementalGroups != nil},
		{at.Child("supplementalGroupsPolicy"), pod.SupplementalGroupsPolicy != nil},
		{at.Child("seLinuxChangePolicy"), pod.SELinuxChangePolicy != nil},
		{path.Child("hostUsers"), spec.HostUsers != nil},
		{path.Child("hostPID"), spec.HostPID},
		{path.Child("hostIPC"), spec.HostIPC},
		{path.Child("shareProcessNamespace"), spec.ShareProcessNamespace != nil},
	}
}

func linuxContainerSettings(c *corev1.SecurityContext, at *field.Path) []setting {
	return []setting{
		{at.Child("appArmorProfile"), c.AppArmorProfile != nil},
		{at.Child("seLinuxOptions"), c.SELinuxOptions != nil},
		{at.Child("seccompProfile"), c.SeccompProfile != nil},
		{at.Child("capabilities"), c.Capabilities != nil},
		{at.Child("readOnlyRootFilesystem"), c.ReadOnlyRootFilesystem != nil},
		{at.Child("privileged"), c.Privileged != nil},
		{at.Child("allowPrivilegeEscalation"), c.AllowPrivilegeEscalation != nil},
		{at.Child("procMount"), c.ProcMount != nil},
		{at.Child("runAsUser"), c.RunAsUser != nil},
		{at.Child("runAsGroup"), c.RunAsGroup != nil},
	}
}

// validateResources refuses resources of the pod as a whole, which are cgroups.
func validateResources(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec.Resources == nil || spec.OS == nil || spec.OS.Name != corev1.Windows {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("resources"), "may not be set for a windows pod")}
}
