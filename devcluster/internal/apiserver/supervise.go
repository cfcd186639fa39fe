package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary a kube-apiserver as a process of its own.
const Subcommand = "kube-apiserver"

// RunProcess runs kube-apiserver as a child process that serves on listener, until it ends (an error) or ctx ends (nil).
func RunProcess(ctx context.Context, settings Settings, listener *net.TCPListener) error {
	return child.Run(ctx, child.Server(settings.Program, Subcommand, settings.args(), listener))
}

// Supervise runs kube-apiserver as a child process that serves on listener, and again on the same port whenever that ends, until ctx ends.
// Between two of them connections are refused.
func Supervise(ctx context.Context, settings Settings, listener *net.TCPListener, log *slog.Logger) error {
	address := listener.Addr().(*net.TCPAddr)
	for {
		err := RunProcess(ctx, settings, listener)
		if ctx.Err() != nil {
			return nil
		}
		log.Warn("kube-apiserver ended, and is started again", "error", err)
		if listener, err = net.ListenTCP("tcp", address); err != nil {
			return fmt.Errorf("listen for kube-apiserver again: %w", err)
		}
	}
}

// RunChild is the child: args are kube-apiserver's flags, the listener and the parent's lifeline are inherited from Supervise.
func RunChild(ctx context.Context, args []string) error {
	child.DieWithParent()
	listener, err := child.Listener()
	if err != nil {
		return err
	}
	server, err := newServer(ctx, args, listener)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
