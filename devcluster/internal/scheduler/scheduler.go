//go:build linux

package scheduler

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/pki"
)

// Subcommand is the argument that makes this binary the child; Args follow.
const Subcommand = "kube-scheduler"

// Settings is what differs from one cluster to the next.
type Settings struct {
	PKI        pki.Files
	Node       pki.NodeFiles
	Kubeconfig string // user system:kube-scheduler
}

// Args are kube-scheduler's flags.
func (s Settings) Args() []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + s.Node.Scheduler.Cert,
		"--tls-private-key-file=" + s.Node.Scheduler.Key,
		"--kubeconfig=" + s.Kubeconfig,
		"--authentication-kubeconfig=" + s.Kubeconfig,
		"--authorization-kubeconfig=" + s.Kubeconfig,
		// The authority is given here, so it need not be looked up in the cluster. One more would hold one more inotify instance.
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + s.PKI.Authority.Cert,
		"--leader-elect=false",
		"--profiling=false",
	}
}

// Run is the child. It returns after SIGTERM; the process ends when the parent does.
func Run(args []string) error {
	child.DieWithParent()
	command := app.NewSchedulerCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	return command.Execute()
}
