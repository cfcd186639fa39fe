// Package network is the network of a node and its pods: a network namespace with routes and packet filters of its own, which has
// no way out but through unix sockets. Linux only.
//
// In go Settings, in a process that is in such a namespace; Start makes addresses, rules and sockets in it. Host is the side of the
// machine. The network of the machine is never changed, and only its loopback can be reached from the node.
package network
