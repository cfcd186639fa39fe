// Package node wires credence-node: in go flags, and out comes a part of Credence on a node of a cluster, which runs until its context is done.
package node
