package connection

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/version"
)

// Flags finds the cluster to talk to as kubectl does: from flags, KUBECONFIG, ~/.kube/config, or inside a pod.
type Flags struct {
	Config *genericclioptions.ConfigFlags
	// CompletionTimeout is how long a completion may take.
	CompletionTimeout time.Duration
	// Limiter limits the requests to API servers. nil: one for each of them.
	Limiter flowcontrol.RateLimiter
}

// New returns the flags, which AddFlags adds to a command.
func New() *Flags {
	flags := genericclioptions.NewConfigFlags(true)
	// A token must not be sent to, or taken from, an unverified server.
	flags.Insecure = nil
	// Nothing is cached on disk.
	flags.CacheDir = nil
	return &Flags{Config: flags, CompletionTimeout: completionTimeout}
}

// AddFlags adds the flags of kubectl that choose a cluster, and --kube-context.
func (c *Flags) AddFlags(flags *pflag.FlagSet) {
	c.Config.AddFlags(flags)
	flags.StringVar(c.Config.Context, "kube-context", "",
		`The same as --context; "token create" and the source workload-identity, where --context is that of the token, have only this one`)
}

// NeedsCluster marks the commands that talk to a cluster.
const NeedsCluster = "credence.dev/needs-cluster"

// RefuseWithoutEffect refuses flags that choose a cluster where the command talks to none: a tool that hands out
// credentials must not ignore a flag.
func (c *Flags) RefuseWithoutEffect(flags *pflag.FlagSet) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if cmd.Annotations[NeedsCluster] != "" || strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
			return nil
		}
		var refusal error
		flags.VisitAll(func(flag *pflag.Flag) {
			if refusal == nil && flag.Changed {
				refusal = command.Usage(cmd, fmt.Sprintf("--%s has no effect: this command talks to no cluster that it could choose", flag.Name))
			}
		})
		return refusal
	}
}

// Namespace returns the namespace chosen by flag, kubeconfig or pod.
func (c *Flags) Namespace() (string, error) {
	namespace, _, err := c.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", kubeconfigFailure(err)
	}
	return namespace, nil
}

// requestTimeout bounds a request where --request-timeout does not.
const requestTimeout = 30 * time.Second

// Open returns the API of the cluster. Warnings of the server go to the writer.
func (c *Flags) Open(warnings io.Writer) (*cluster.API, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return c.openConfig(config, warnings)
}

// OpenAs returns the API of the cluster for another user, whom the user must be allowed to impersonate. A user that is impersonated
// can't impersonate another one.
func (c *Flags) OpenAs(user string, warnings io.Writer) (*cluster.API, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("as %s, user %s can't be impersonated: leave out --as", config.Impersonate.UserName, user)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return c.openConfig(config, warnings)
}

// config is that of the cluster, and of the user of the flags.
func (c *Flags) config() (*rest.Config, error) {
	loader := c.Config.ToRawKubeConfigLoader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, kubeconfigFailure(err)
	}
	if !rest.IsConfigTransportTLS(*config) {
		return nil, c.plainFailure(loader, config.Host)
	}
	if *c.Config.BearerToken != "" {
		// Beside a client certificate a server would not even look at the token of the flag.
		config = tokenOnly(config)
	}
	return config, nil
}

// OpenFile returns the API of the cluster that a kubeconfig's current context names, as the user in it and no other.
func (c *Flags) OpenFile(file string, warnings io.Writer) (*cluster.API, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		failed := kubeconfigFailure(err)
		failed.Hint = "check the file " + file
		return nil, failed
	}
	if !rest.IsConfigTransportTLS(*config) {
		return nil, c.plainFailure(loader, config.Host)
	}
	return c.openConfig(config, warnings)
}

// A command sends at most fifty requests within a second.
const (
	sustained = 40
	burst     = 10
)

func (c *Flags) openConfig(config *rest.Config, warnings io.Writer) (*cluster.API, error) {
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	config.UserAgent = "credence/" + version.Read().Version
	if config.RateLimiter = c.Limiter; c.Limiter == nil {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(sustained, burst)
	}
	if config.Timeout == 0 {
		config.Timeout = timeout(config)
	}
	config, err := withProgram(config)
	if err != nil {
		return nil, err
	}
	opened, err := cluster.New(config)
	if err != nil {
		return nil, kubeconfigFailure(err)
	}
	return opened, nil
}

// tokenOnly drops every credential of the kubeconfig but the token.
func tokenOnly(config *rest.Config) *rest.Config {
	only := rest.AnonymousClientConfig(config)
	only.BearerToken = config.BearerToken
	only.Impersonate = config.Impersonate
	return only
}

// plainFailure explains the lack of TLS: without any configuration the loader falls back to plain http on this machine.
func (c *Flags) plainFailure(loader clientcmd.ClientConfig, host string) *command.Failure {
	if raw, err := loader.RawConfig(); err == nil && len(raw.Clusters) == 0 && *c.Config.APIServer == "" {
		return &command.Failure{
			Line: "error: there is no kubeconfig, so no cluster to talk to",
			Hint: "set KUBECONFIG or give --kubeconfig FILE; a cluster on this machine is started by: credence up",
			Code: command.ExitUsage,
		}
	}
	return &command.Failure{
		Line: fmt.Sprintf("error: the API server %s is not https: a token would travel in the clear", host),
		Hint: "give its https URL by --server or in the kubeconfig",
		Code: command.ExitUsage,
	}
}

func kubeconfigFailure(err error) *command.Failure {
	return &command.Failure{
		Line: "error: read the kubeconfig: " + err.Error(),
		Hint: "check KUBECONFIG, --kubeconfig and --kube-context",
		Code: command.ExitUsage, Err: err,
	}
}

// Home is the namespace of what names none; one that nothing can have is wrong usage.
func (c *Flags) Home(cmd *cobra.Command) (string, error) {
	home, err := c.Namespace()
	if err != nil {
		return "", err
	}
	if err := cluster.CheckName(home); err != nil {
		return "", command.Usage(cmd, "--namespace: "+err.Error())
	}
	return home, nil
}

// Scope is the namespace that a command reads, empty for all, beside Home.
func (c *Flags) Scope(cmd *cobra.Command, all bool) (namespace, home string, err error) {
	if home, err = c.Home(cmd); all {
		return "", home, err
	}
	return home, home, err
}

// OpenBoth opens the cluster of the workloads, and that of the identities if it is another one.
func (c *Flags) OpenBoth(warnings io.Writer, identityKubeconfig string) (cluster.Both, error) {
	workload, err := c.Open(warnings)
	if err != nil || identityKubeconfig == "" {
		return cluster.Both{Identity: workload, Workload: workload}, err
	}
	identity, err := c.OpenFile(identityKubeconfig, warnings)
	return cluster.Both{Identity: identity, Workload: workload}, err
}

// IdentityKubeconfigHelp is the help of the flag --identity-kubeconfig.
const IdentityKubeconfigHelp = "The kubeconfig of the cluster that the identities are in, if it is not the one that their tokens are delivered to"
