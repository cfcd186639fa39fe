package kubeapi

import (
	"fmt"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/internal/version"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 30 * time.Second
	// programTimeout and personTimeout bound a program that gets the caller's own credentials, without and with a person.
	programTimeout, personTimeout = time.Minute, 10 * time.Minute
)

// client is the API of one cluster, for one request of a client.
type client struct {
	core, tokens, certificates rest.Interface
	access                     kubeconfig.Access
}

// Tokens is the workloadidentity.Connect of real clusters.
func Tokens(access kubeconfig.Access, request credential.Request) (workloadidentity.API, error) {
	c, err := open(access, request)
	if err != nil {
		return nil, err
	}
	return tokens{c}, nil
}

// Certificates is the clientcertificate.Connect of real clusters.
func Certificates(access kubeconfig.Access, request credential.Request) (clientcertificate.API, error) {
	c, err := open(access, request)
	if err != nil {
		return nil, err
	}
	return certificates{c}, nil
}

func open(access kubeconfig.Access, request credential.Request) (*client, error) {
	config, err := restConfig(access)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "credence/" + version.Read().Version
	config.Timeout = requestTimeout
	// The sources pace themselves, by their own clock.
	config.QPS = -1
	config.WarningHandler = warnings{request.Terminal}
	if config.ExecProvider != nil {
		if config, err = withProgram(config, request.ExecInfo.Interactive); err != nil {
			return nil, err
		}
	}
	return newClient(config, access)
}

// restConfig is how to reach the cluster.
func restConfig(access kubeconfig.Access) (*rest.Config, error) {
	if access.Pod != "" {
		return &rest.Config{
			Host: access.Server, BearerTokenFile: filepath.Join(access.Pod, "token"),
			TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(access.Pod, "ca.crt")},
		}, nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{Precedence: access.Files},
		&clientcmd.ConfigOverrides{CurrentContext: access.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	// The stored credential was looked up by the first reading.
	chosen := raw.Contexts[access.Context]
	if config.Host != access.Server || chosen == nil || chosen.AuthInfo != access.User {
		return nil, fmt.Errorf("read the kubeconfig: context %q was changed a moment ago: try again", access.Context)
	}
	return config, nil
}

// withProgram returns config with the credentials of its user's program. Not by client-go, which waits for a program that hangs without
// end, whatever becomes of the request.
func withProgram(config *rest.Config, interactive bool) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	config.ExecProvider = guarded(config.ExecProvider, interactive)
	// The request waits for the program, and the program perhaps for a person.
	config.Timeout += programTimeout
	if interactive {
		config.Timeout += personTimeout
	}
	// Its programs end with this process, which makes one request, on Linux. Elsewhere one that hangs is ended by the time-out alone.
	pool, err := execcredential.NewPool(execcredential.Options{Timeout: programTimeout, InteractiveTimeout: personTimeout})
	if err == nil {
		config, err = clientgo.Config(pool, config)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// guarded is the program of a kubeconfig's user as it is run from here.
func guarded(program *api.ExecConfig, interactive bool) *api.ExecConfig {
	program = program.DeepCopy()
	program.Env = append(program.Env, api.ExecEnvVar{Name: kubeconfig.Guard, Value: "1"})
	if !interactive {
		program.StdinUnavailable = true
		program.StdinUnavailableMessage = "the client that requests a credential does not allow a prompt"
	}
	return program
}

// newClient returns clients of the three groups that are needed: a full clientset would double the start-up time.
func newClient(config *rest.Config, access kubeconfig.Access) (*client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types of the API: %w", err)
		}
	}
	if !rest.IsConfigTransportTLS(*config) {
		return nil, fmt.Errorf("the API server %s is not https: credentials would travel in the clear", access.Server)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	group := func(path string, version schema.GroupVersion) (rest.Interface, error) {
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion = path, &version
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		client, err := rest.RESTClientForConfigAndClient(config, transport)
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig: %w", err)
		}
		return client, nil
	}
	c := &client{access: access}
	if c.core, err = group("/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.tokens, err = group("/apis", v1alpha1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.certificates, err = group("/apis", certificatesv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	return c, nil
}

// warnings shows what a server warns of.
type warnings struct{ terminal credential.Terminal }

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.terminal.Notice("Warning: %s", plain(text))
	}
}
