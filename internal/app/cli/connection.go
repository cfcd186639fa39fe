package cli

import (
	"crypto/x509"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/version"
)

// connection finds the cluster to talk to as kubectl does: from flags, KUBECONFIG, ~/.kube/config, or inside a pod.
type connection struct {
	flags *genericclioptions.ConfigFlags
}

func newConnection() *connection {
	flags := genericclioptions.NewConfigFlags(true)
	// A token must not be sent to, or taken from, an unverified server.
	flags.Insecure = nil
	// Nothing is cached on disk.
	flags.CacheDir = nil
	return &connection{flags: flags}
}

func (c *connection) addFlags(flags *pflag.FlagSet) {
	c.flags.AddFlags(flags)
	flags.StringVar(c.flags.Context, "kube-context", "",
		`The same as --context; "token create" and the source workload-identity, where --context is that of the token, have only this one`)
}

// needsCluster marks the commands that talk to a cluster.
const needsCluster = "credence.dev/needs-cluster"

// refuseWithoutEffect refuses flags that choose a cluster where the command talks to none: a tool that hands out
// credentials must not ignore a flag.
func (c *connection) refuseWithoutEffect(flags *pflag.FlagSet) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if cmd.Annotations[needsCluster] != "" || strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
			return nil
		}
		var refusal error
		flags.VisitAll(func(flag *pflag.Flag) {
			if refusal == nil && flag.Changed {
				refusal = usageFailure(cmd, fmt.Sprintf("--%s has no effect: this command talks to no cluster that it could choose", flag.Name))
			}
		})
		return refusal
	}
}

// namespace returns the namespace chosen by flag, kubeconfig or pod.
func (c *connection) namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", kubeconfigFailure(err)
	}
	return namespace, nil
}

// requestTimeout bounds a request where --request-timeout does not.
const requestTimeout = 30 * time.Second

// open returns the API of the cluster. Warnings of the server go to the writer.
func (c *connection) open(warnings io.Writer) (*api, error) {
	loader := c.flags.ToRawKubeConfigLoader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, kubeconfigFailure(err)
	}
	if !rest.IsConfigTransportTLS(*config) {
		return nil, c.plainFailure(loader, config.Host)
	}
	if *c.flags.BearerToken != "" {
		// Beside a client certificate a server would not even look at the token of the flag.
		config = tokenOnly(config)
	}
	return openConfig(config, warnings)
}

// openFile returns the API of the cluster that a kubeconfig's current context names, as the user in it and no other.
func (c *connection) openFile(file string, warnings io.Writer) (*api, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		failed := kubeconfigFailure(err)
		failed.hint = "check the file " + file
		return nil, failed
	}
	if !rest.IsConfigTransportTLS(*config) {
		return nil, c.plainFailure(loader, config.Host)
	}
	return openConfig(config, warnings)
}

func openConfig(config *rest.Config, warnings io.Writer) (*api, error) {
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	config.UserAgent = "credence/" + version.Read().Version
	if config.Timeout == 0 {
		config.Timeout = timeout(config)
	}
	config, err := withProgram(config)
	if err != nil {
		return nil, err
	}
	return newAPI(config)
}

// tokenOnly drops every credential of the kubeconfig but the token.
func tokenOnly(config *rest.Config) *rest.Config {
	only := rest.AnonymousClientConfig(config)
	only.BearerToken = config.BearerToken
	only.Impersonate = config.Impersonate
	return only
}

// plainFailure explains the lack of TLS: without any configuration the loader falls back to plain http on this machine.
func (c *connection) plainFailure(loader clientcmd.ClientConfig, host string) *failure {
	if raw, err := loader.RawConfig(); err == nil && len(raw.Clusters) == 0 && *c.flags.APIServer == "" {
		return &failure{
			line: "error: there is no kubeconfig, so no cluster to talk to",
			hint: "set KUBECONFIG or give --kubeconfig FILE; a cluster on this machine is started by: credence up",
			code: exitUsage,
		}
	}
	return &failure{
		line: fmt.Sprintf("error: the API server %s is not https: a token would travel in the clear", host),
		hint: "give its https URL by --server or in the kubeconfig",
		code: exitUsage,
	}
}

func kubeconfigFailure(err error) *failure {
	return &failure{
		line: "error: read the kubeconfig: " + err.Error(),
		hint: "check KUBECONFIG, --kubeconfig and --kube-context",
		code: exitUsage, err: err,
	}
}

// newAPI returns clients of the three API groups that are needed: a full clientset would double the start-up time.
func newAPI(config *rest.Config) (*api, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core types: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register token types: %w", err)
	}
	if err := identityv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register types of keys: %w", err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, kubeconfigFailure(err)
	}
	client := func(apiPath string, group schema.GroupVersion) (rest.Interface, error) {
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion = apiPath, &group
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		client, err := rest.RESTClientForConfigAndClient(config, transport)
		if err != nil {
			return nil, kubeconfigFailure(err)
		}
		return client, nil
	}
	core, err := client("/api", corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	tokens, err := client("/apis", v1alpha1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	keys, err := client("/apis", identityv1alpha1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	opened := &api{core: core, tokens: tokens, keys: keys, host: config.Host, http: transport}
	if err := rest.LoadTLSFiles(config); err == nil && len(config.CAData) > 0 {
		if opened.authorities, err = x509.SystemCertPool(); err != nil {
			opened.authorities = x509.NewCertPool()
		}
		opened.authorities.AppendCertsFromPEM(config.CAData)
	}
	return opened, nil
}
