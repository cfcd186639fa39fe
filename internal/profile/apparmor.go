package profile

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const appArmorProfile = "appArmorProfile"

// annotated is the AppArmor profile that a container has by an annotation of its pod, as before Kubernetes 1.30, or nil. After the webhooks, the API
// server writes it into the context of a container that has none.
func annotated(pod *corev1.Pod, name string) *corev1.AppArmorProfile {
	switch value := pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+name]; {
	case value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case value == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case strings.HasPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix):
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new(strings.TrimPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix))}
	}
	return nil
}

// withAnnotated is the context of a container with the AppArmor profile of its annotation, where it has no other.
func withAnnotated(pod *corev1.Pod, c container) *corev1.SecurityContext {
	own := *c.context
	if own != nil && own.AppArmorProfile != nil {
		return own
	}
	if profile := annotated(pod, c.name); profile != nil {
		own = cmp.Or(own.DeepCopy(), &corev1.SecurityContext{})
		own.AppArmorProfile = profile
	}
	return own
}

// unannotate takes off the annotations of a profile that was filled in, which the API server adds for older kubelets.
func unannotate(pod *corev1.Pod, containers map[string]container, profile *corev1.AppArmorProfile) {
	for _, c := range containers {
		if own := annotated(pod, c.name); own != nil && equality.Semantic.DeepEqual(own, profile) {
			delete(pod.Annotations, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.name)
		}
	}
}
