package network

import "path/filepath"

const (
	// ServiceCIDR has the addresses of Services: the first is that of default/kubernetes.
	ServiceCIDR = "10.96.0.0/16"
	// DNS is the address of the Service of cluster DNS, of zone Domain.
	DNS    = "10.96.0.10"
	Domain = "cluster.local"
	// Pods has the addresses of pods, Gateway is the first of them.
	Pods    = "10.97.0.0/16"
	gateway = "10.97.0.1"
	// Node is the address of the node, for its pods and itself.
	Node = "10.98.0.1"
)

// HostSocket is where the machine's side of the node in folder connects for others: with its own loopback itself, with every other
// address through NodeSocket.
func HostSocket(folder string) string { return filepath.Join(folder, "host.sock") }

// NodeSocket is where the node's side connects for others.
func NodeSocket(folder string) string { return filepath.Join(folder, "node.sock") }
