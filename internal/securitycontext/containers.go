package securitycontext

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// container is a container of any kind, and where it is in its pod.
type container struct {
	*corev1.Container
	path *field.Path
	// lifecycle reports whether this kind of container may have a lifecycle.
	lifecycle bool
}

func regularContainers(spec *corev1.PodSpec, path *field.Path) []container {
	var found []container
	for i := range spec.Containers {
		found = append(found, container{&spec.Containers[i], path.Child("containers").Index(i), true})
	}
	return found
}

func initContainers(spec *corev1.PodSpec, path *field.Path) []container {
	var found []container
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		found = append(found, container{c, path.Child("initContainers").Index(i), sidecar})
	}
	return found
}

func ephemeralContainers(spec *corev1.PodSpec, path *field.Path) []container {
	var found []container
	for i := range spec.EphemeralContainers {
		c := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		found = append(found, container{c, path.Child("ephemeralContainers").Index(i), false})
	}
	return found
}

// windowsOptions are the container's, or nil.
func (c container) windowsOptions() *corev1.WindowsSecurityContextOptions {
	if c.SecurityContext == nil {
		return nil
	}
	return c.SecurityContext.WindowsOptions
}

// podWindowsOptions are the pod's, or nil.
func podWindowsOptions(spec *corev1.PodSpec) *corev1.WindowsSecurityContextOptions {
	if spec.SecurityContext == nil {
		return nil
	}
	return spec.SecurityContext.WindowsOptions
}
