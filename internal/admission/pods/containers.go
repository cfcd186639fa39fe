package pods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/target"
)

// container is what a container of any kind has that concerns an identity. Its slices are the pod's own, not to be written.
type container struct {
	path, name string // path: its JSON pointer
	env        []corev1.EnvVar
	mounts     []corev1.VolumeMount
	devices    []corev1.VolumeDevice
}

// podContainers are the containers that a pod starts with: init containers, sidecars among them, and the others.
func podContainers(pod *corev1.Pod) []container {
	all := make([]container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i, c := range pod.Spec.InitContainers {
		all = append(all, container{fmt.Sprintf("/spec/initContainers/%d", i), c.Name, c.Env, c.VolumeMounts, c.VolumeDevices})
	}
	for i, c := range pod.Spec.Containers {
		all = append(all, container{fmt.Sprintf("/spec/containers/%d", i), c.Name, c.Env, c.VolumeMounts, c.VolumeDevices})
	}
	return all
}

func ephemeralContainers(pod *corev1.Pod, names []string) []container {
	var some []container
	for i, c := range pod.Spec.EphemeralContainers {
		if slices.Contains(names, c.Name) {
			some = append(some, container{fmt.Sprintf("/spec/ephemeralContainers/%d", i), c.Name, c.Env, c.VolumeMounts, c.VolumeDevices})
		}
	}
	return some
}

func containerNames(pod *corev1.Pod) []string {
	var names []string
	for _, c := range podContainers(pod) {
		names = append(names, c.name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// containers adds mounts and variables to containers.
func (p *patch) containers(pod *corev1.Pod, containers []container, grants []grant, os target.OS) ([]string, *Denial) {
	var warnings []string
	for _, c := range containers {
		var mounts []corev1.VolumeMount
		var env []corev1.EnvVar
		for _, g := range grants {
			present, denial := mounted(pod, c, g)
			if denial != nil {
				return nil, denial
			}
			if !present {
				mounts = append(mounts, corev1.VolumeMount{Name: g.volume.Name, MountPath: g.place.Dir, ReadOnly: true})
			}
			missing, kept := variables(c, g, os)
			env, warnings = append(env, missing...), append(warnings, kept...)
		}
		extend(p, c.path+"/env", c.env, env)
		extend(p, c.path+"/volumeMounts", c.mounts, mounts)
	}
	return bounded(warnings), nil
}

// bounded keeps the warnings below what the API server would cut off.
func bounded(warnings []string) []string {
	const most = 10
	if len(warnings) <= most {
		return warnings
	}
	return append(warnings[:most:most], fmt.Sprintf("and %d more warnings like these", len(warnings)-most))
}
