package cri

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Node has the settings of the node.
type Node struct {
	// SeccompFolder is the absolute path that names of seccomp profiles are relative to, as in --root-dir of the kubelet.
	SeccompFolder string
	// SeccompDefault reports whether containers without a seccomp profile get that of the runtime.
	SeccompDefault bool
	// MaskedPaths are hidden from containers beside those that always are, such as the thermal throttle of each CPU.
	MaskedPaths []string
	// Groups are those of the pod's volumes.
	Groups []int64
}

// LinuxContainer is the message for a container of a Linux pod. windowsOptions are ignored, as Kubernetes ignores
// them. Left to the caller are user namespaces, and the container that an ephemeral one is to share processes with.
func LinuxContainer(pod *corev1.PodSpec, c Container, node Node) (*runtime.LinuxContainerSecurityContext, error) {
	if err := refuseRoot(c); err != nil {
		return nil, err
	}
	effective := c.effective()
	seccomp, err := seccompProfile(effective.SeccompProfile, node)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.Name, err)
	}
	appArmor, err := appArmorProfile(effective.AppArmorProfile)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.Name, err)
	}
	groups, policy, err := supplementalGroups(podContext(pod), node)
	if err != nil {
		return nil, err
	}
	uid, username := linuxUser(c)
	return &runtime.LinuxContainerSecurityContext{
		Capabilities:             capabilities(effective.Capabilities),
		Privileged:               isTrue(effective.Privileged),
		NamespaceOptions:         namespaces(pod),
		SelinuxOptions:           selinux(effective.SELinuxOptions),
		RunAsUser:                uid,
		RunAsGroup:               number(effective.RunAsGroup),
		RunAsUsername:            username,
		ReadonlyRootfs:           isTrue(effective.ReadOnlyRootFilesystem),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
		NoNewPrivs:               effective.AllowPrivilegeEscalation != nil && !*effective.AllowPrivilegeEscalation,
		MaskedPaths:              maskedPaths(effective.ProcMount, node),
		ReadonlyPaths:            readonlyPaths(effective.ProcMount),
		Seccomp:                  seccomp,
		Apparmor:                 appArmor,
	}, nil
}

// linuxUser is runAsUser, or else the user of the image: never both a number and a name, which the runtime refuses. An image
// without a user is root, and set so: a group without a user is refused too.
func linuxUser(c Container) (uid *runtime.Int64Value, name string) {
	switch {
	case c.effective().RunAsUser != nil:
		return number(c.effective().RunAsUser), ""
	case c.Image.UID != nil:
		return number(c.Image.UID), ""
	case c.Image.Name != "":
		return nil, c.Image.Name
	}
	return &runtime.Int64Value{}, ""
}

func number(n *int64) *runtime.Int64Value {
	if n == nil {
		return nil
	}
	return &runtime.Int64Value{Value: *n}
}

func capabilities(c *corev1.Capabilities) *runtime.Capability {
	if c == nil {
		return nil
	}
	var message runtime.Capability
	for _, add := range c.Add {
		message.AddCapabilities = append(message.AddCapabilities, string(add))
	}
	for _, drop := range c.Drop {
		message.DropCapabilities = append(message.DropCapabilities, string(drop))
	}
	return &message
}

func selinux(options *corev1.SELinuxOptions) *runtime.SELinuxOption {
	if options == nil {
		return nil
	}
	return &runtime.SELinuxOption{User: options.User, Role: options.Role, Type: options.Type, Level: options.Level}
}
