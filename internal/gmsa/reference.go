package gmsa

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Reference is a place in a pod that names a GMSACredentialSpec, or carries contents of one, or both.
type Reference struct {
	// Container is the name of the container that it is for; empty for all containers of the pod without their own.
	Container string
	// Name and Contents are empty where they are absent: for both fields and annotations these are the same.
	Name, Contents string
	// NamePath and ContentsPath are where these two are, or would be, as kubectl names fields.
	NamePath, ContentsPath string

	// pointer is ContentsPath as a JSON pointer.
	pointer string
	// ephemeral reports whether Container is an ephemeral container, annotation whether the reference is an annotation.
	ephemeral, annotation bool
}

const (
	nameField     = ".securityContext.windowsOptions.gmsaCredentialSpecName"
	contentsField = ".securityContext.windowsOptions.gmsaCredentialSpec"
	contentsEnd   = "/securityContext/windowsOptions/gmsaCredentialSpec"
)

// References are all of a pod: of its fields, and with annotations also of its annotations, whether or not there is a
// container of that name.
func References(pod *corev1.Pod, annotations bool) []Reference {
	var found []Reference
	add := func(options *corev1.WindowsSecurityContextOptions, r Reference) {
		if options == nil {
			return
		}
		r.Name, r.Contents = ptr.Deref(options.GMSACredentialSpecName, ""), ptr.Deref(options.GMSACredentialSpec, "")
		if r.Name != "" || r.Contents != "" {
			found = append(found, r)
		}
	}
	if context := pod.Spec.SecurityContext; context != nil {
		add(context.WindowsOptions, Reference{NamePath: "spec" + nameField, ContentsPath: "spec" + contentsField, pointer: "/spec" + contentsEnd})
	}
	for _, list := range containerLists(&pod.Spec) {
		for i, c := range list.containers {
			if c.SecurityContext == nil {
				continue
			}
			at := fmt.Sprintf("spec.%s[%d]", list.field, i)
			add(c.SecurityContext.WindowsOptions, Reference{
				Container: c.Name, NamePath: at + nameField, ContentsPath: at + contentsField,
				pointer: fmt.Sprintf("/spec/%s/%d%s", list.field, i, contentsEnd), ephemeral: list.field == ephemeralField,
			})
		}
	}
	if annotations {
		found = append(found, annotated(pod.Annotations)...)
	}
	return found
}

const ephemeralField = "ephemeralContainers"

type containerList struct {
	field      string
	containers []corev1.Container
}

// containerLists are all containers of a pod, in the order in which they would start.
func containerLists(spec *corev1.PodSpec) []containerList {
	ephemeral := make([]corev1.Container, len(spec.EphemeralContainers))
	for i := range spec.EphemeralContainers {
		ephemeral[i] = corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
	}
	return []containerList{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}, {ephemeralField, ephemeral}}
}
