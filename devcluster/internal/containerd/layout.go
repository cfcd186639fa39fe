//go:build linux

package containerd

import (
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
)

// Settings is what differs from one node to the next.
type Settings struct {
	Programs Programs
	// Folder holds everything that containerd keeps.
	Folder string
}

// Socket is the address of the runtime.
func (s Settings) Socket() string { return Socket(s.Folder) }

// Socket is the address of the runtime with this folder, and is in its processes' arguments.
func Socket(folder string) string { return filepath.Join(folder, "containerd.sock") }

func (s Settings) configFile() string { return filepath.Join(s.Folder, "containerd.toml") }

// MachineFolders are those that containerd, its shims and network plugins use whatever their settings: for sockets, runc's state,
// pods' networks and the addresses that pods have.
func MachineFolders() []string { return []string{"/run/containerd", "/run/netns", "/var/lib/cni"} }

func stateFolder(folder string) string { return filepath.Join(folder, "containerd-state") }

// CNIFolder has the configuration of pods' networks, and its subfolder bin the plugins.
func (s Settings) CNIFolder() string { return filepath.Join(s.Folder, "cni") }

// PauseImage holds a pod's namespaces.
const PauseImage = "docker.io/library/credence-pause:1"

// config is a containerd configuration, version 2 (containerd-config.toml(5)), which containerd 1 and 2 read.
func (s Settings) config() []byte {
	q := strconv.Quote
	return fmt.Appendf(nil, `version = 2
root = %s
state = %s
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = %s

[debug]
  level = "warn"

# After a restart containers are deleted whose shims do not answer in time: on a busy machine, seconds are not enough.
[timeouts]
  "io.containerd.timeout.shim.cleanup" = "2m"
  "io.containerd.timeout.shim.load" = "2m"
  "io.containerd.timeout.task.state" = "2m"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %s
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  enable_selinux = false
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %s
  conf_dir = %s

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = %s
  default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
`, q(filepath.Join(s.Folder, "containerd")), q(stateFolder(s.Folder)), q(s.Socket()), q(PauseImage),
		q(filepath.Join(s.CNIFolder(), "bin")), q(s.CNIFolder()), q(snapshotter(s.Folder)))
}

// overlayMagic is OVERLAYFS_SUPER_MAGIC (statfs(2)).
const overlayMagic = 0x794c7630

// snapshotter is overlayfs, save where the folder is in an overlay itself, as in a container: they do not nest.
func snapshotter(folder string) string {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err == nil && stat.Type == overlayMagic {
		return "native"
	}
	return "overlayfs"
}
