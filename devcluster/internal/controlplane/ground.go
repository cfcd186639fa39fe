package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/apiserver"
	"github.com/credence-id/credence/devcluster/internal/controllermanager"
	"github.com/credence-id/credence/devcluster/internal/kubeconfig"
	"github.com/credence-id/credence/devcluster/internal/network"
	"github.com/credence-id/credence/devcluster/internal/node"
	"github.com/credence-id/credence/devcluster/internal/pki"
	"github.com/credence-id/credence/devcluster/internal/state"
)

// ground is what a control plane stands on: its directory and its ports, taken,
// and the files that its parts are given.
type ground struct {
	config                    Config
	dir                       *state.Dir
	listener, managerListener *net.TCPListener

	files             pki.Files
	probe             prober
	authentication    string
	audit             string
	managerKubeconfig string
}

// prepare takes what only one cluster can have, until the process ends, then
// writes what is missing. Nothing runs yet.
func prepare(ctx context.Context, config Config) (*ground, error) {
	g := &ground{config: config}
	if err := g.take(); err != nil {
		return nil, err
	}
	// Whether or not there is to be a node now, no pod of an earlier run may go on.
	if err := node.Clean(ctx, g.nodeFolder()); err != nil {
		return nil, err
	}
	if err := g.write(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *ground) take() error {
	var err error
	if g.dir, err = state.Open(g.config.Dir); err != nil {
		return err
	}
	if g.listener, err = listen(g.config.Port, "--port"); err != nil {
		return err
	}
	g.managerListener, err = listen(g.config.ControllerManagerPort, "--controller-manager-port")
	return err
}

func (g *ground) write(ctx context.Context) error {
	var err error
	if g.files, err = pki.Ensure(g.dir.Path("pki"), serviceIP(), g.config.Now()); err != nil {
		return err
	}
	if g.probe, err = newProber(g.files); err != nil {
		return err
	}
	authentication, err := g.authenticationConfig(ctx)
	if err != nil {
		return err
	}
	g.authentication, err = orDefault(g.config.AuthenticationConfigFile, g.dir.Path("authentication-config.yaml"), authentication)
	if err != nil {
		return err
	}
	if g.audit, err = orDefault(g.config.AuditPolicyFile, g.dir.Path("audit-policy.yaml"), auditPolicy); err != nil {
		return err
	}
	if err := state.WriteFile(g.dir.Path("controller-manager.url"), []byte(g.managerURL()+"\n"), 0o644); err != nil {
		return err
	}
	if g.config.Node {
		if err := g.writeEgress(); err != nil {
			return err
		}
	}
	g.managerKubeconfig = g.dir.Path("controller-manager.kubeconfig")
	return kubeconfig.Write(g.managerKubeconfig, g.url(), "system:kube-controller-manager",
		g.files.Authority.Cert, g.files.ControllerManagerClient)
}

// authenticationConfig is the default AuthenticationConfiguration, as the version of kube-apiserver reads it.
func (g *ground) authenticationConfig(ctx context.Context) (string, error) {
	program := g.program(apiserver.Subcommand)
	if program == "" {
		return authenticationConfig, nil
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w", program, err)
	}
	if strings.HasPrefix(string(version), "Kubernetes v1.33.") {
		return strings.Replace(authenticationConfig, "k8s.io/v1", "k8s.io/v1beta1", 1), nil
	}
	return authenticationConfig, nil
}

// writeEgress makes kube-apiserver connect to kubelets, Services and pods by the node's socket.
func (g *ground) writeEgress() error {
	if err := os.MkdirAll(g.nodeFolder(), 0o700); err != nil {
		return fmt.Errorf("make the node's folder: %w", err)
	}
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{"name": "cluster", "connection": map[string]any{
			"proxyProtocol": "HTTPConnect",
			"transport":     map[string]any{"uds": map[string]string{"udsName": network.HostSocket(g.nodeFolder())}},
		}}},
	})
	if err != nil {
		return fmt.Errorf("encode EgressSelectorConfiguration: %w", err)
	}
	return state.WriteFile(g.egressFile(), content, 0o600)
}

func (g *ground) egressFile() string { return g.dir.Path("egress.json") }

func (g *ground) url() string {
	return fmt.Sprintf("https://%s", g.listener.Addr())
}

func (g *ground) managerURL() string {
	return fmt.Sprintf("https://%s", g.managerListener.Addr())
}

func (g *ground) adminKubeconfig() string {
	return g.dir.Path("admin.kubeconfig")
}

func (g *ground) nodeFolder() string { return NodeFolder(g.dir.Path()) }

func (g *ground) nodeSettings() node.Settings {
	return node.Settings{
		PKI:             g.files,
		PKIFolder:       g.dir.Path("pki"),
		Folder:          g.nodeFolder(),
		URL:             g.url(),
		AdminKubeconfig: g.adminKubeconfig(),
		Shared:          append([]int{g.listener.Addr().(*net.TCPAddr).Port}, g.config.SharedPorts...),
		CSIDriver:       g.config.CSIDriver,

		ImageCredentials: g.config.ImageCredentials,
		ImageRegistries:  g.config.ImageRegistries,
		Guard:            g.config.Guard,
		GuardTemplate:    g.config.GuardTemplate,
		GuardAllow:       g.config.GuardAllow,
		Audience:         apiserver.ServiceAccountIssuer,
	}
}

func (g *ground) apiServerSettings(etcd string) apiserver.Settings {
	settings := apiserver.Settings{
		Program:                  g.program(apiserver.Subcommand),
		PKI:                      g.files,
		Etcd:                     etcd,
		ServiceCIDR:              network.ServiceCIDR,
		AuthenticationConfigFile: g.authentication,
		AuditPolicyFile:          g.audit,
		AuditLogFile:             g.dir.Path("audit.log"),
		FeatureGates:             g.config.FeatureGates,
		Extra:                    g.config.APIServerArgs,
	}
	if g.config.Node {
		settings.NodeAddress, settings.EgressConfigFile = network.Node, g.egressFile()
	}
	return settings
}

// program is the file of a program of another version of Kubernetes, or empty.
func (g *ground) program(name string) string {
	if g.config.Programs == "" {
		return ""
	}
	return filepath.Join(g.config.Programs, name)
}

func (g *ground) controllerManagerSettings() controllermanager.Settings {
	return controllermanager.Settings{
		Program:         g.program(controllermanager.Subcommand),
		PKI:             g.files,
		Kubeconfig:      g.managerKubeconfig,
		ServiceCIDR:     network.ServiceCIDR,
		VolumePlugins:   g.dir.Path("volume-plugins"),
		FeatureGates:    g.config.FeatureGates,
		Extra:           g.config.ControllerManagerArgs,
		SignsExternally: apiserver.SignsExternally(g.config.APIServerArgs),
	}
}
