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
	// CSIDriver is the file of a program that the node runs with the argument csi, or empty: see node.Settings.
	CSIDriver string
	// ImageCredentials is the file of a program that the kubelet runs for credentials of images, and ImageRegistries that of the registries
	// that it is for; or both are empty: see node.Settings.
	ImageCredentials, ImageRegistries string
	// Guard is the file of a program that the kubelet reaches containerd through, or empty: see node.Settings.
	Guard, GuardTemplate, GuardAllow string
	// AuthenticationConfigFile is an AuthenticationConfiguration (apiserver.config.k8s.io/v1).
	// When empty, client certificates and service account tokens authenticate, and nothing else.
	AuthenticationConfigFile string
	// AuditPolicyFile is a Policy (audit.k8s.io/v1). When empty, everything is logged at level Metadata.
	AuditPolicyFile string
	// Programs is a folder with the programs kube-apiserver and kube-controller-manager of another version of Kubernetes, which are run in
	// place of those in this binary. It may be empty.
	Programs string
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
