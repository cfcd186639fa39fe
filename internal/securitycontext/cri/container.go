package cri

import (
	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Container is what is known of a container when it is handed to the runtime.
type Container struct {
	// Name is the one in the pod, for errors.
	Name string
	// Effective is its effective security context: the container's own over the pod's, profiles for seccomp and AppArmor
	// included. Nil counts as empty.
	Effective *corev1.SecurityContext
	// Image is the user that its image names.
	Image ImageUser
}

// ImageUser is the user in the configuration of an image: a number, or a name, or neither. On Linux neither is root.
type ImageUser struct {
	UID  *int64
	Name string
}

// ImageUserOf reads the user from the runtime's status of an image (ImageStatus of CRI), where a number goes before a name.
func ImageUserOf(image *runtime.Image) ImageUser {
	if uid := image.GetUid(); uid != nil {
		return ImageUser{UID: &uid.Value}
	}
	return ImageUser{Name: image.GetUsername()}
}

// Effective computes the effective security context of a container in a pod; either may be nil, the result is not.
type Effective func(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) *corev1.SecurityContext

func (c Container) effective() *corev1.SecurityContext {
	if c.Effective == nil {
		return &corev1.SecurityContext{}
	}
	return c.Effective
}

// isTrue reports whether a field is set, and true.
func isTrue(field *bool) bool { return field != nil && *field }
