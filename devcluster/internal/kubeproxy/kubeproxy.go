//go:build linux

package kubeproxy

import (
	"k8s.io/kubernetes/cmd/kube-proxy/app"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary the child; Args follow.
const Subcommand = "kube-proxy"

// Settings is what differs from one node to the next.
type Settings struct {
	Kubeconfig string // user system:kube-proxy
	// Name is the node's.
	Name string
	// Pods has the addresses of pods.
	Pods string
}

// Args are kube-proxy's flags.
func (s Settings) Args() []string {
	return []string{
		"--kubeconfig=" + s.Kubeconfig,
		"--hostname-override=" + s.Name,
		"--proxy-mode=nftables",
		"--cluster-cidr=" + s.Pods,
		"--healthz-bind-address=127.0.0.1:10256",
		// Limits of all namespaces' connections are left as they are.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
		"--profiling=false",
	}
}

// Run is the child. It returns after SIGTERM; the process ends when the parent does.
func Run(args []string) error {
	child.DieWithParent()
	command := app.NewProxyCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	return command.Execute()
}
