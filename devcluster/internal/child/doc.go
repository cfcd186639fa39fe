// Package child runs parts of the cluster that cannot share a process with kube-apiserver as processes of this same binary:
// Kubernetes components set process-wide logging, feature gates and signal handlers.
//
// In go the arguments of a subcommand, and an open listener if the part takes one; Run returns when the process has ended.
// The process ends when its parent does, however the parent does. It never decides what is started again.
package child
