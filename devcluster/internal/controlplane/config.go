package controlplane

import (
	"log/slog"
	"net"
	"path/filepath"
	"time"
)

// Config is what a user chooses.
type Config struct {
	// Dir holds all state. Required.
	Dir string
	// Port is kube-apiserver's. 0 takes a free one.
	Port int
	// ControllerManagerPort serves kube-controller-manager's health and metrics. 0 takes a free one.
	ControllerManagerPort int
	// Node also runs a node. Its pods reach SharedPorts of this machine's 127.0.0.1 at their own, and kube-apiserver's.
	Node        bool
	SharedPorts []int
	// AuthenticationConfigFile is an AuthenticationConfiguration (apiserver.config.k8s.io/v1).
	// When empty, client certificates and service account tokens authenticate, and nothing else.
	AuthenticationConfigFile string
	// AuditPolicyFile is a Policy (audit.k8s.io/v1). When empty, everything is logged at level Metadata.
	AuditPolicyFile string
	// FeatureGates is given to both components, as on their command line.
	FeatureGates string
	// APIServerArgs and ControllerManagerArgs are more flags of the two.
	APIServerArgs, ControllerManagerArgs []string

	// RestartAPIServer runs kube-apiserver as a process of its own, which can be ended and is then started again.
	RestartAPIServer bool

	// Now is the clock by which certificates are made.
	Now func() time.Time
	Log *slog.Logger
}

// NodeFolder is what the node of the cluster in dir, an absolute path, keeps everything in.
func NodeFolder(dir string) string { return filepath.Join(dir, "node") }

// serviceIP is the cluster IP of Service default/kubernetes: the first of network.ServiceCIDR.
func serviceIP() net.IP {
	return net.IPv4(10, 96, 0, 1)
}
