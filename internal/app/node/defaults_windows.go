package node

const (
	// Windows lets only administrators make a pipe with this prefix, so that no other process is there first.
	listenByDefault     = "npipe:////./pipe/ProtectedPrefix/Administrators/credence-guard"
	runtimeByDefault    = "npipe:////./pipe/containerd-containerd"
	kubeletDirByDefault = `C:\var\lib\kubelet`
)
