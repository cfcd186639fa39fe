// Package controlplane is one Kubernetes control plane on this machine: etcd
// and kube-apiserver in this process, kube-controller-manager and the parts of a
// node, if there is to be one, in children.
//
// In goes a Config; Run starts the parts in order, watches over them, and stops
// them in the opposite order. All state is in one directory and is the same
// after a stop, however it came. It listens on 127.0.0.1 only.
package controlplane
