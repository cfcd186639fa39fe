package controllermanager

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/componentlog"
)

// Run is the child: args are kube-controller-manager's flags, the listener and
// the parent's lifeline are inherited from Supervise. It returns when ctx ends;
// the process ends when the parent does.
func Run(ctx context.Context, args []string) error {
	child.DieWithParent()
	listener, err := child.Listener()
	if err != nil {
		return err
	}
	opts, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("kube-controller-manager defaults: %w", err)
	}
	if err := parse(opts, args); err != nil {
		return fmt.Errorf("kube-controller-manager settings: %w", err)
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port

	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("kube-controller-manager feature gates: %w", err)
	}
	if err := componentlog.Apply(ctx, opts.Logs, utilfeature.DefaultFeatureGate); err != nil {
		return err
	}
	// It watches every API of the cluster, deprecated ones too.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	config, err := opts.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return fmt.Errorf("kube-controller-manager settings: %w", err)
	}
	return app.Run(ctx, config.Complete())
}

func parse(opts *options.KubeControllerManagerOptions, args []string) error {
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	named := opts.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	opts.ParsedFlags = &named
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
