package cri

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LinuxSandbox is the message for the sandbox of a Linux pod: the pod's own context, and whether there will be a
// privileged container. Its seccomp profile is always that of the runtime, so that a pod can have a stricter one than the
// sandbox needs.
func LinuxSandbox(pod *corev1.PodSpec, node Node) (*runtime.LinuxSandboxSecurityContext, error) {
	context := podContext(pod)
	groups, policy, err := supplementalGroups(context, node)
	if err != nil {
		return nil, err
	}
	sandbox := &runtime.LinuxSandboxSecurityContext{
		NamespaceOptions:         namespaces(pod),
		SelinuxOptions:           selinux(context.SELinuxOptions),
		RunAsUser:                number(context.RunAsUser),
		RunAsGroup:               number(context.RunAsGroup),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
		Privileged: slices.ContainsFunc(containers(pod), func(c container) bool {
			return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
		}),
		Seccomp: &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_RuntimeDefault},
	}
	return sandbox, nil
}

func podContext(pod *corev1.PodSpec) *corev1.PodSecurityContext {
	if pod.SecurityContext == nil {
		return &corev1.PodSecurityContext{}
	}
	return pod.SecurityContext
}

// namespaces are those of the pod. Processes are seen within a container only, unless the pod sets otherwise; the default of
// CRI is another one.
func namespaces(pod *corev1.PodSpec) *runtime.NamespaceOption {
	options := &runtime.NamespaceOption{Pid: runtime.NamespaceMode_CONTAINER}
	if isTrue(pod.ShareProcessNamespace) {
		options.Pid = runtime.NamespaceMode_POD
	}
	if pod.HostPID {
		options.Pid = runtime.NamespaceMode_NODE
	}
	if pod.HostIPC {
		options.Ipc = runtime.NamespaceMode_NODE
	}
	if pod.HostNetwork {
		options.Network = runtime.NamespaceMode_NODE
	}
	return options
}

func supplementalGroups(context *corev1.PodSecurityContext, node Node) ([]int64, runtime.SupplementalGroupsPolicy, error) {
	var groups []int64
	if context.FSGroup != nil {
		groups = append(groups, *context.FSGroup)
	}
	groups = append(groups, context.SupplementalGroups...)
	groups = append(groups, node.Groups...)
	if context.SupplementalGroupsPolicy == nil {
		return groups, runtime.SupplementalGroupsPolicy_Merge, nil
	}
	switch policy := *context.SupplementalGroupsPolicy; policy {
	case corev1.SupplementalGroupsPolicyMerge:
		return groups, runtime.SupplementalGroupsPolicy_Merge, nil
	case corev1.SupplementalGroupsPolicyStrict:
		return groups, runtime.SupplementalGroupsPolicy_Strict, nil
	default:
		return nil, 0, fmt.Errorf("the pod's supplementalGroupsPolicy %q is not known: set it to Merge or Strict", policy)
	}
}
