//go:build linux

package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/devcluster/internal/pki"
	"github.com/credence-id/credence/devcluster/internal/state"
)

// Settings is what differs from one node to the next.
type Settings struct {
	PKI        pki.Files
	Node       pki.NodeFiles
	Kubeconfig string // user system:node:<Name>
	Name       string
	// Address is the node's, on a device of its network.
	Address string
	// DNS is the address of cluster DNS, of zone Domain.
	DNS, Domain string
	// Folder holds everything that the kubelet keeps.
	Folder string
	// Runtime is the container runtime's socket.
	Runtime string
	// CgroupRoot is the cgroup, which exists, below which pods get theirs.
	CgroupRoot string
	// ImageCredentials is the folder of programs that have credentials of images, and ImageCredentialsConfig the file of their
	// CredentialProviderConfig; or both are empty.
	ImageCredentials, ImageCredentialsConfig string
}

// Root is the folder of pods' volumes, and of the sockets by which plugins meet the kubelet.
func (s Settings) Root() string { return Root(s.Folder) }

// Root is where a kubelet that keeps everything in folder has its root directory.
func Root(folder string) string { return filepath.Join(folder, "kubelet") }

// LongestSocket is the longest path below Root that the kubelet makes a socket at.
const LongestSocket = "pod-resources/kubelet.sock"

// StaticPods is the folder of manifests of pods that the kubelet runs by itself.
func (s Settings) StaticPods() string { return filepath.Join(s.Folder, "static-pods") }

func (s Settings) configFile() string { return filepath.Join(s.Folder, "kubelet.json") }

// Args are the flags of what has no place in the configuration file.
func (s Settings) Args() []string {
	args := []string{
		"--config=" + s.configFile(),
		"--kubeconfig=" + s.Kubeconfig,
		"--root-dir=" + s.Root(),
		"--cert-dir=" + filepath.Join(s.Folder, "kubelet-pki"),
		"--hostname-override=" + s.Name,
		"--node-ip=" + s.Address,
	}
	if s.ImageCredentials != "" {
		args = append(args, "--image-credential-provider-bin-dir="+s.ImageCredentials, "--image-credential-provider-config="+s.ImageCredentialsConfig)
	}
	return args
}

// MachineFolders are those that the kubelet uses whatever its settings: for device plugins, and for links to logs.
func MachineFolders() []string { return []string{"/var/lib/kubelet", "/var/log/containers"} }

func (s Settings) resolvFile() string { return filepath.Join(s.Folder, "resolv.conf") }

// Write writes the files that Args name.
func (s Settings) Write() error {
	config, err := s.config()
	if err != nil {
		return fmt.Errorf("make the kubelet's configuration: %w", err)
	}
	if err := state.WriteFile(s.resolvFile(), []byte("nameserver "+s.DNS+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(s.StaticPods(), 0o700); err != nil {
		return fmt.Errorf("make the folder of static pods: %w", err)
	}
	return state.WriteFile(s.configFile(), config, 0o600)
}

// config is a KubeletConfiguration (kubelet.config.k8s.io/v1beta1).
func (s Settings) config() ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",

		"address":           s.Address,
		"tlsCertFile":       s.Node.Kubelet.Cert,
		"tlsPrivateKeyFile": s.Node.Kubelet.Key,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": s.PKI.Authority.Cert},
		},
		"authorization": map[string]any{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix://" + s.Runtime,
		"staticPodPath":            s.StaticPods(),
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               s.CgroupRoot,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"podLogsDir":               filepath.Join(s.Folder, "pod-logs"),
		"volumePluginDir":          filepath.Join(s.Folder, "volume-plugins"),

		// How soon a renewed Secret is seen in pods, at the latest; the default of a minute is for many pods.
		"syncFrequency": "4s",
		"clusterDNS":    []string{s.DNS},
		"clusterDomain": s.Domain,
		// Name servers of the machine cannot be reached.
		"resolvConf": s.resolvFile(),
		// The packet filter is kube-proxy's alone.
		"makeIPTablesUtilChains": false,
		// A disk of a laptop is often nearly full, and images cannot be pulled again: only memory counts.
		"evictionHard":                map[string]any{"memory.available": "1Mi"},
		"imageGCHighThresholdPercent": 100,
	}, "", "  ")
}
