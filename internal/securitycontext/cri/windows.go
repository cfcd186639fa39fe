package cri

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// WindowsContainer is the message for a container of a Windows pod: the user (runAsUserName, or else that of the
// image), the contents of the gMSA credential spec, and whether it is a HostProcess container. Fields that are for Linux are
// ignored, as Kubernetes ignores them.
func WindowsContainer(c Container) (*runtime.WindowsContainerSecurityContext, error) {
	if err := refuseAdministrator(c); err != nil {
		return nil, err
	}
	options := c.effective().WindowsOptions
	contents, err := credentialSpec(options, fmt.Sprintf("container %q", c.Name))
	if err != nil {
		return nil, err
	}
	return &runtime.WindowsContainerSecurityContext{
		RunAsUsername:  windowsUser(c),
		CredentialSpec: contents,
		HostProcess:    options != nil && isTrue(options.HostProcess),
	}, nil
}

// windowsUser starts with the image's user. A number is left to the runtime, which has the image.
func windowsUser(c Container) string {
	if name := userName(c.effective().WindowsOptions); name != "" {
		return name
	}
	return c.Image.Name
}

// userName is runAsUserName; empty counts as not set, or else an empty one would hide the user of the image from the checks,
// while the runtime falls back to it.
func userName(options *corev1.WindowsSecurityContextOptions) string {
	if options == nil || options.RunAsUserName == nil {
		return ""
	}
	return *options.RunAsUserName
}

// credentialSpec is the contents of a gMSA. A name whose contents were never filled in is an error: the runtime knows no
// names, and would silently start the container without its identity.
func credentialSpec(options *corev1.WindowsSecurityContextOptions, of string) (string, error) {
	if options == nil {
		return "", nil
	}
	if options.GMSACredentialSpec != nil && *options.GMSACredentialSpec != "" {
		return *options.GMSACredentialSpec, nil
	}
	if options.GMSACredentialSpecName != nil && *options.GMSACredentialSpecName != "" {
		return "", fmt.Errorf("%s names the GMSACredentialSpec %q, but its contents are missing, and it would run without that account: "+
			"create the pod anew while the admission webhook that fills them in is running", of, *options.GMSACredentialSpecName)
	}
	return "", nil
}
