// Package csi runs the sanity suite of the Container Storage Interface, as its project publishes it, on credence-node csi: the services and
// calls that a driver of ephemeral volumes has. In go the program, by CREDENCE_BIN; nothing comes out but test failures. Volumes with
// tokens are tested beside the driver and on a real kubelet. It is a module of its own, so that the programs do not depend on the suite.
package csi
