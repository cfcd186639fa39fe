package controllermanager

import (
	"context"
	"net"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary the child.
const Subcommand = "kube-controller-manager"

// Supervise runs kube-controller-manager as a child process that serves its
// health and metrics on listener. It returns when the child has ended: with an
// error when the child did so by itself, nil when ctx ended it.
func Supervise(ctx context.Context, settings Settings, listener *net.TCPListener) error {
	return child.Run(ctx, child.Server(settings.Program, Subcommand, settings.args(), listener))
}
