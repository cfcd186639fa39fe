// Package cri says what a container runtime is told of the security context of a pod and its containers, in messages of the
// Container Runtime Interface v1. In go effective security contexts, the user of the image, and what the node knows; out come
// messages for Windows and Linux, for containers and for the sandbox of the pod, or an error that says which container cannot
// be run as it asks, and what to do. The pod's operating system is data: everything here works on any machine. Of a gMSA the
// contents are handed over, never the name. The package never changes its inputs, and its messages share nothing with them.
package cri
