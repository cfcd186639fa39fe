package cri

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// WindowsSandbox is the message for the sandbox of a Windows pod. User and gMSA are those of the pod; a container's own
// settings do not reach the sandbox, except that it is a HostProcess container: the runtime must know that before
// the first one. Then all containers must be, init and ephemeral ones too, in a pod of the host's network.
func WindowsSandbox(pod *corev1.PodSpec, effective Effective) (*runtime.WindowsSandboxSecurityContext, error) {
	var options *corev1.WindowsSecurityContextOptions
	if pod.SecurityContext != nil {
		options = pod.SecurityContext.WindowsOptions
	}
	hostProcess, err := hostProcessPod(pod, options, effective)
	if err != nil {
		return nil, err
	}
	contents, err := credentialSpec(options, "the pod")
	if err != nil {
		return nil, err
	}
	return &runtime.WindowsSandboxSecurityContext{
		RunAsUsername:  userName(options),
		CredentialSpec: contents,
		HostProcess:    hostProcess,
	}, nil
}

func hostProcessPod(pod *corev1.PodSpec, options *corev1.WindowsSecurityContextOptions, effective Effective) (bool, error) {
	var with, without []string
	for _, c := range containers(pod) {
		if windows := effective(pod.SecurityContext, c.SecurityContext).WindowsOptions; windows != nil && isTrue(windows.HostProcess) {
			with = append(with, c.Name)
		} else {
			without = append(without, c.Name)
		}
	}
	switch {
	case len(with) == 0:
		return false, nil
	case len(without) > 0:
		return false, fmt.Errorf("a pod must not have both HostProcess containers (%s) and others (%s): set windowsOptions.hostProcess for the whole pod, or for none of its containers",
			strings.Join(with, ", "), strings.Join(without, ", "))
	case !pod.HostNetwork:
		return false, fmt.Errorf("a pod with HostProcess containers (%s) must be in the network of the host: set spec.hostNetwork to true", strings.Join(with, ", "))
	case options != nil && options.HostProcess != nil && !*options.HostProcess:
		return false, errors.New("windowsOptions.hostProcess is false for the pod, and true for all of its containers: set it to true for the pod, or leave it out there")
	}
	return true, nil
}

// container is what all three kinds of containers have.
type container struct {
	Name            string
	SecurityContext *corev1.SecurityContext
}

// containers are all containers of a pod: init, regular and ephemeral ones.
func containers(pod *corev1.PodSpec) []container {
	var all []container
	for _, c := range pod.InitContainers {
		all = append(all, container{c.Name, c.SecurityContext})
	}
	for _, c := range pod.Containers {
		all = append(all, container{c.Name, c.SecurityContext})
	}
	for _, c := range pod.EphemeralContainers {
		all = append(all, container{c.Name, c.SecurityContext})
	}
	return all
}
