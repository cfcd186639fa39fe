package cri

import (
	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// Node has the settings of the node.
type Node struct {
	// SeccompFolder is the absolute path that names of seccomp profiles are relative to, as in --root-dir of the kubelet.
	SeccompFolder string
}

// LinuxContainer has the fields of a container's security context in the message for it. runAsNonRoot has none there, and windowsOptions are
// ignored, as Kubernetes ignores them.
func LinuxContainer(c *corev1.SecurityContext, node Node) (*runtime.LinuxContainerSecurityContext, error) {
	seccomp, err := seccompProfile(c.SeccompProfile, node)
	if err != nil {
		return nil, err
	}
	appArmor, err := appArmorProfile(c.AppArmorProfile)
	if err != nil {
		return nil, err
	}
	return &runtime.LinuxContainerSecurityContext{
		Capabilities:   capabilities(c.Capabilities),
		Privileged:     ptr.Deref(c.Privileged, false),
		SelinuxOptions: selinux(c.SELinuxOptions),
		RunAsUser:      number(c.RunAsUser),
		RunAsGroup:     number(c.RunAsGroup),
		ReadonlyRootfs: ptr.Deref(c.ReadOnlyRootFilesystem, false),
		NoNewPrivs:     c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation,
		MaskedPaths:    maskedPaths(c.ProcMount),
		ReadonlyPaths:  readonlyPaths(c.ProcMount),
		Seccomp:        seccomp,
		Apparmor:       appArmor,
	}, nil
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
