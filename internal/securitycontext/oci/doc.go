// Package oci says what a container runtime writes into the OCI runtime specification from the security context of a container
// or sandbox. In goes what a kubelet would hand over, and a specification that has everything else; out comes the
// specification with user, credential spec, HostProcess and, on Linux, what of the file system is hidden or read-only. Which
// container may run at all is decided by package cri. This package never looks into an image: a user that has to be looked up
// there is left to the runtime, as are capabilities, whose defaults are its own.
package oci
