package oci

import (
	"fmt"
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

// Linux is what the specification of a Linux container has from its security context.
type Linux struct {
	// User is process.user; nil where name or group must be looked up in the image.
	User            *specs.User
	NoNewPrivileges bool
	ReadonlyRoot    bool
	// MaskedPaths and ReadonlyPaths are absolute, and nil for a privileged container.
	MaskedPaths, ReadonlyPaths []string
}

// LinuxContainer ignores windowsOptions.
func LinuxContainer(pod *corev1.PodSpec, c cri.Container, node cri.Node) (Linux, error) {
	message, err := cri.LinuxContainer(pod, c, node)
	if err != nil {
		return Linux{}, err
	}
	linux := Linux{NoNewPrivileges: message.GetNoNewPrivs(), ReadonlyRoot: message.GetReadonlyRootfs()}
	if !message.GetPrivileged() {
		linux.MaskedPaths, linux.ReadonlyPaths = message.GetMaskedPaths(), message.GetReadonlyPaths()
	}
	uid, gid := message.GetRunAsUser(), message.GetRunAsGroup()
	if uid == nil || gid == nil {
		return linux, nil
	}
	var ids []uint32
	for _, id := range append([]int64{uid.GetValue(), gid.GetValue()}, message.GetSupplementalGroups()...) {
		if id < 0 || id > math.MaxUint32 {
			return Linux{}, fmt.Errorf("container %q: %d is not a user or group ID of Linux (0 to %d): set runAsUser, runAsGroup, fsGroup and supplementalGroups to such", c.Name, id, uint32(math.MaxUint32))
		}
		ids = append(ids, uint32(id))
	}
	linux.User = &specs.User{UID: ids[0], GID: ids[1], AdditionalGids: ids[2:]}
	return linux, nil
}

// Into puts them into a specification, over whatever it had. A user that must be looked up is left as it is.
func (l Linux) Into(spec *specs.Spec) {
	if spec.Process == nil {
		spec.Process = &specs.Process{}
	}
	if l.User != nil {
		spec.Process.User = *l.User
	}
	spec.Process.NoNewPrivileges = l.NoNewPrivileges
	if spec.Root == nil {
		spec.Root = &specs.Root{}
	}
	spec.Root.Readonly = l.ReadonlyRoot
	if spec.Linux == nil {
		spec.Linux = &specs.Linux{}
	}
	spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths = l.MaskedPaths, l.ReadonlyPaths
}
