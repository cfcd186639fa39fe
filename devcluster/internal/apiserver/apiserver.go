package apiserver

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/credence-id/credence/devcluster/internal/componentlog"
)

// Server is a kube-apiserver whose settings are complete and checked.
type Server struct {
	options options.CompletedOptions
}

// New parses and checks the settings. Nothing is started; the listener is
// served, and closed, by Run. There can be one Server in a process: feature
// gates and logging of Kubernetes are global. ctx ends when the user stops the cluster.
func New(ctx context.Context, settings Settings, listener *net.TCPListener) (*Server, error) {
	return newServer(ctx, settings.args(), listener)
}

func newServer(ctx context.Context, args []string, listener net.Listener) (*Server, error) {
	opts := options.NewServerRunOptions()
	if err := parse(opts, args); err != nil {
		return nil, fmt.Errorf("kube-apiserver settings: %w", err)
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port

	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver feature gates: %w", err)
	}
	if err := componentlog.Apply(ctx, opts.Logs, registry.FeatureGateFor("kube")); err != nil {
		return nil, err
	}
	// The server's calls to itself use what it also warns about.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver settings: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver settings: %w", utilerrors.NewAggregate(errs))
	}
	return &Server{options: completed}, nil
}

// Run serves until ctx ends and what was being served is done.
func (s *Server) Run(ctx context.Context) error {
	return app.Run(ctx, s.options)
}

func parse(opts *options.ServerRunOptions, args []string) error {
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	named := opts.Flags()
	globalflag.AddGlobalFlags(named.FlagSet("global"), flags.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if extra := flags.Args(); len(extra) > 0 {
		return fmt.Errorf("%q is not a flag", extra[0])
	}
	return nil
}
