package node

import (
	"errors"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// Name is the node's name. Its address is network.Node.
const Name = "127.0.0.1"

// Subcommand is the argument that makes this binary the process that runs a node; the node's folder follows.
const Subcommand = "node"

// Settings is what differs from one node to the next.
type Settings struct {
	PKI pki.Files
	// PKIFolder is where pki.Ensure was called for.
	PKIFolder string
	// Folder holds everything that the node keeps.
	Folder string
	// URL is kube-apiserver's, AdminKubeconfig leads there as the admin.
	URL, AdminKubeconfig string
	// Shared are ports of the machine's 127.0.0.1 that pods reach at their own.
	Shared []int
}

// State is the content of processes.json in the folder while a node runs.
type State struct {
	Node      string    `json:"node"`
	Processes []Process `json:"processes"`
}

// Process is one that runs now.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

// ErrElsewhere is the error of every function on a system without nodes.
var ErrElsewhere = errors.New("a node needs Linux: pods run in its control groups and namespaces")
