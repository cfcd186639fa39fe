package oci

import (
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

// HostProcessAnnotation marks a HostProcess container for hcsshim: "true" or "false".
const HostProcessAnnotation = "microsoft.com/hostprocess-container"

// Windows is what the specification of a Windows container or sandbox has from its security context.
type Windows struct {
	// Username is process.user.username; empty is the default user of the image's operating system.
	Username string
	// CredentialSpec is the JSON of windows.credentialSpec, or "".
	CredentialSpec string
	// HostProcess is the annotation.
	HostProcess bool
}

// WindowsContainer starts with the user of the image, as the runtime does.
func WindowsContainer(c cri.Container) (Windows, error) {
	message, err := cri.WindowsContainer(c)
	if err != nil {
		return Windows{}, err
	}
	return Windows{
		Username:       username(message.GetRunAsUsername(), c.Image),
		CredentialSpec: message.GetCredentialSpec(),
		HostProcess:    message.GetHostProcess(),
	}, nil
}

// WindowsSandbox is for the container that holds the sandbox, which runs image: it has the gMSA and user of the pod.
func WindowsSandbox(pod *corev1.PodSpec, effective cri.Effective, image cri.ImageUser) (Windows, error) {
	message, err := cri.WindowsSandbox(pod, effective)
	if err != nil {
		return Windows{}, err
	}
	return Windows{
		Username:       username(message.GetRunAsUsername(), image),
		CredentialSpec: message.GetCredentialSpec(),
		HostProcess:    message.GetHostProcess(),
	}, nil
}

func username(asked string, image cri.ImageUser) string {
	switch {
	case asked != "":
		return asked
	case image.UID != nil:
		return strconv.FormatInt(*image.UID, 10)
	}
	return image.Name
}

// Into puts them into a specification, over its previous values: fields that a security context does not set must not come from
// elsewhere.
//
// The credential spec is a string that holds JSON. The OCI specification allows any JSON there; but hcsshim, which hands it to
// Windows, takes a string alone, and starts the container without an identity if it finds an object. The annotation is always
// there, as pods can bring annotations of their own into a specification.
func (w Windows) Into(spec *specs.Spec) {
	if spec.Process == nil {
		spec.Process = &specs.Process{}
	}
	spec.Process.User = specs.User{Username: w.Username}
	if spec.Windows == nil {
		spec.Windows = &specs.Windows{}
	}
	spec.Windows.CredentialSpec = nil
	if w.CredentialSpec != "" {
		spec.Windows.CredentialSpec = w.CredentialSpec
	}
	if spec.Annotations == nil {
		spec.Annotations = map[string]string{}
	}
	spec.Annotations[HostProcessAnnotation] = strconv.FormatBool(w.HostProcess)
}
