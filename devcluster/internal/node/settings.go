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
	// CSIDriver is the file of a program that serves volumes, or empty. Its arguments are csi, and the flags --node-name, --kubelet-dir and
	// --kubeconfig, of a file without credentials, and, if it isn't empty, --registries with ImageRegistries.
	CSIDriver string
	// ImageCredentials is the file of a program that the kubelet runs for credentials of images of the registries in the file ImageRegistries, or
	// empty. Its command kubelet-config, with the flags --registries, --kubeconfig and --audience, prints the configuration for that.
	ImageCredentials, ImageRegistries string
	// Guard is the file of a program that the kubelet reaches containerd through, or empty. Its arguments are guard, and the flags --listen,
	// --runtime, --node-name, --kubelet-dir, --template with GuardTemplate, --kubeconfig of the kubelet's user and, if it isn't empty, --allow with GuardAllow.
	Guard, GuardTemplate, GuardAllow string
	// Audience is one of tokens that kube-apiserver accepts.
	Audience string
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
