// Package oci converts the security context of a container or sandbox to the OCI runtime specification, as a container runtime
// does. In goes the message of a kubelet, and a specification that has everything else; out comes the
// specification with user, credential spec, HostProcess and, on Linux, the hidden and read-only paths. Which
// container may run at all is decided by package cri. This package never reads an image: a user that has to be looked up
// there is left to the runtime, as are capabilities, whose defaults are its own.
package oci
