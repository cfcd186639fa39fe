package securitycontext

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateHostProcess holds a pod to what Windows nodes can run: either no container is a HostProcess container, or all are,
// in the network of the node. It looks at pods of any operating system, as Kubernetes does. Containers are all of the pod's,
// in the order in which they start.
func validateHostProcess(spec *corev1.PodSpec, containers []container, path *field.Path) field.ErrorList {
	var ofPod *bool
	if options := podWindowsOptions(spec); options != nil {
		ofPod = options.HostProcess
	}

	var errs field.ErrorList
	hostProcesses := 0
	for _, c := range containers {
		var ofContainer *bool
		if options := c.windowsOptions(); options != nil {
			ofContainer = options.HostProcess
		}
		if ofPod != nil && ofContainer != nil && *ofPod != *ofContainer {
			errs = append(errs, field.Invalid(c.path.Child("securityContext", "windowsOptions", "hostProcess"), *ofContainer,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod)))
		}
		inherit(&ofContainer, ofPod)
		if ofContainer != nil && *ofContainer {
			hostProcesses++
		}
	}
	if hostProcesses == 0 {
		return errs
	}

	if hostProcesses != len(containers) {
		errs = append(errs, field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if !spec.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}
