package explain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
)

// containersWith lists the containers of a pod that mount an identity's volume, with its files and variables.
func containersWith(pod *corev1.Pod, identity pods.Identity) []Container {
	volume := pods.VolumeName(identity.Name)
	names := fileNames(pod, volume, identity)
	wanted := variables(identity)
	var with []Container
	add := func(name string, mounts []corev1.VolumeMount, env []corev1.EnvVar) {
		i := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
		if i < 0 {
			return
		}
		c := Container{Name: name}
		place := target.Place{OS: target.Linux, Dir: mounts[i].MountPath}
		if strings.Contains(place.Dir, `\`) {
			place.OS = target.Windows
		}
		for _, file := range names {
			c.Files = append(c.Files, place.File(file))
		}
		for _, variable := range env {
			expected, ours := wanted(place, variable.Name)
			switch {
			case !ours:
			// The webhook keeps the kubelet from replacing $(NAME) in a value.
			case variable.ValueFrom == nil && variable.Value == strings.ReplaceAll(expected, "$", "$$"):
				c.Variables = append(c.Variables, variable)
			default:
				c.Kept = append(c.Kept, variable.Name)
			}
		}
		with = append(with, c)
	}
	for _, c := range pod.Spec.InitContainers {
		add(c.Name, c.VolumeMounts, c.Env)
	}
	for _, c := range pod.Spec.Containers {
		add(c.Name, c.VolumeMounts, c.Env)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name, c.VolumeMounts, c.Env)
	}
	return with
}

func fileNames(pod *corev1.Pod, volume string, identity pods.Identity) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume && v.CSI != nil {
			names = append(names, target.TokenFile)
			if config, problems := targets.For(identity.Type).Parse(identity.ProviderConfig, nil); len(problems) == 0 {
				names = append(names, config.Injection(target.Place{OS: target.Linux}).Mounts...)
			}
		}
		if v.Name != volume || v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				for _, item := range source.Secret.Items {
					names = append(names, item.Path)
				}
			}
			if source.DownwardAPI != nil {
				for _, item := range source.DownwardAPI.Items {
					names = append(names, item.Path)
				}
			}
		}
	}
	return names
}

// variables returns the value that an identity gives a variable in a place.
func variables(identity pods.Identity) func(target.Place, string) (string, bool) {
	config, problems := targets.For(identity.Type).Parse(identity.ProviderConfig, nil)
	return func(place target.Place, name string) (string, bool) {
		if len(problems) > 0 {
			return "", false
		}
		for _, v := range config.Injection(place).Env {
			if v.Name == name {
				return v.Value, true
			}
		}
		return "", false
	}
}
