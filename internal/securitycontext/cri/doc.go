// Package cri converts the security context of a pod and its containers to messages of the
// Container Runtime Interface v1. In go effective security contexts, the user of the image, and the settings of the node; out come
// messages for Windows and Linux, for containers and for the sandbox of the pod, or an error that names a container that cannot
// run as specified, and the correction. The pod's operating system is data: everything here works on any machine. Of a gMSA only the
// contents are passed on, never the name. Messages are read back for what decides about those of a kubelet. Nothing but SetLinux changes its
// inputs, and messages share nothing with what they are made of.
package cri
