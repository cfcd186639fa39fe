package webhook

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accountObject is what of a pod decides about group managed service accounts. The rest of it is not decoded.
type accountObject struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ServiceAccountName  string             `json:"serviceAccountName"`
		Hostname            string             `json:"hostname"`
		HostNetwork         bool               `json:"hostNetwork"`
		SecurityContext     accountContext     `json:"securityContext"`
		InitContainers      []accountContainer `json:"initContainers"`
		Containers          []accountContainer `json:"containers"`
		EphemeralContainers []accountContainer `json:"ephemeralContainers"`
	} `json:"spec"`
}

type accountContext struct {
	WindowsOptions *corev1.WindowsSecurityContextOptions `json:"windowsOptions"`
}

type accountContainer struct {
	Name            string         `json:"name"`
	Image           string         `json:"image"`
	SecurityContext accountContext `json:"securityContext"`
}

func (c accountContainer) container() corev1.Container {
	container := corev1.Container{Name: c.Name, Image: c.Image}
	if c.SecurityContext.WindowsOptions != nil {
		container.SecurityContext = &corev1.SecurityContext{WindowsOptions: c.SecurityContext.WindowsOptions}
	}
	return container
}

// pod is a pod with these fields alone.
func (o *accountObject) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: o.Metadata.Annotations}}
	pod.Spec.ServiceAccountName, pod.Spec.Hostname, pod.Spec.HostNetwork = o.Spec.ServiceAccountName, o.Spec.Hostname, o.Spec.HostNetwork
	if o.Spec.SecurityContext.WindowsOptions != nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: o.Spec.SecurityContext.WindowsOptions}
	}
	for _, c := range o.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c.container())
	}
	for _, c := range o.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, c.container())
	}
	for _, c := range o.Spec.EphemeralContainers {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c.container())})
	}
	return pod
}

// images are those of containers and init containers, the one thing of them that can be changed.
func (o *accountObject) images() []string {
	var images []string
	for _, containers := range [][]accountContainer{o.Spec.InitContainers, o.Spec.Containers} {
		for _, c := range containers {
			images = append(images, c.Image)
		}
	}
	return images
}

// added are the names of the ephemeral containers that old did not have; those that it has can't be changed.
func (o *accountObject) added(old *accountObject) []string {
	return addedTo(&o.pod().Spec, &old.pod().Spec)
}
