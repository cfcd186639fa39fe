//go:build linux

package kubelet

import (
	"encoding/json"
	"path/filepath"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// Settings is what differs from one node to the next.
type Settings struct {
	PKI        pki.Files
	Node       pki.NodeFiles
	Kubeconfig string // user system:node:<Name>
	// Name is the node's name and address. As an IP address, it may be a loopback address: that is not checked.
	Name string
	// Folder holds everything that the kubelet keeps.
	Folder string
	// Runtime is the container runtime's socket.
	Runtime string
	// CgroupRoot is the cgroup, which exists, below which pods get theirs.
	CgroupRoot string
	// Port serves the API that kube-apiserver calls, HealthPort /healthz without TLS.
	Port, HealthPort int
}

// Root is the folder of pods' volumes, and of the sockets by which plugins meet the kubelet.
func (s Settings) Root() string { return Root(s.Folder) }

// Root is where a kubelet that keeps everything in folder has its root directory.
func Root(folder string) string { return filepath.Join(folder, "kubelet") }

// LongestSocket is the longest path below Root that the kubelet makes a socket at.
const LongestSocket = "pod-resources/kubelet.sock"

// ConfigFile is where Args look for what Config returns.
func (s Settings) ConfigFile() string { return filepath.Join(s.Folder, "kubelet.json") }

// Args are the flags of what has no place in the configuration file.
func (s Settings) Args() []string {
	return []string{
		"--config=" + s.ConfigFile(),
		"--kubeconfig=" + s.Kubeconfig,
		"--root-dir=" + s.Root(),
		"--cert-dir=" + filepath.Join(s.Folder, "kubelet-pki"),
		"--hostname-override=" + s.Name,
	}
}

// MachineFolders are those that the kubelet uses whatever its settings: for device plugins, and for links to logs.
func MachineFolders() []string { return []string{"/var/lib/kubelet", "/var/log/containers"} }

// Config is a KubeletConfiguration (kubelet.config.k8s.io/v1beta1).
func (s Settings) Config() ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",

		"address":            "127.0.0.1",
		"port":               s.Port,
		"healthzBindAddress": "127.0.0.1",
		"healthzPort":        s.HealthPort,
		"tlsCertFile":        s.Node.Kubelet.Cert,
		"tlsPrivateKeyFile":  s.Node.Kubelet.Key,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": s.PKI.Authority.Cert},
		},
		"authorization": map[string]any{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix://" + s.Runtime,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               s.CgroupRoot,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"podLogsDir":               filepath.Join(s.Folder, "pod-logs"),
		"volumePluginDir":          filepath.Join(s.Folder, "volume-plugins"),

		// How soon a renewed Secret is seen in pods, at the latest; the default of a minute is for many pods.
		"syncFrequency": "4s",
		// The machine's packet filter is not the kubelet's here.
		"makeIPTablesUtilChains": false,
		// A disk of a laptop is often nearly full, and images cannot be pulled again: only memory counts.
		"evictionHard":                map[string]any{"memory.available": "1Mi"},
		"imageGCHighThresholdPercent": 100,
	}, "", "  ")
}
