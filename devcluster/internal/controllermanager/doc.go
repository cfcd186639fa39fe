// Package controllermanager is the real kube-controller-manager, run as a child
// process of this same binary.
//
// It cannot share a process with kube-apiserver: both set process-wide
// logging and feature gates. In go settings and an open listener; Supervise
// runs the child to its end, Run is what the child runs. The child ends when
// its parent does, however the parent does.
package controllermanager
