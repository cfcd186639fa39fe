//go:build unix

package node

const (
	listenByDefault     = "/run/credence/guard.sock"
	runtimeByDefault    = "/run/containerd/containerd.sock"
	kubeletDirByDefault = "/var/lib/kubelet"
)
