package tokensecret

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Mounted returns the Secrets of its namespace that a pod's volumes are made from, each once, in alphabetical order.
func Mounted(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
