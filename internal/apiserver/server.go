package apiserver

import (
	"fmt"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/openapi"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/internal/identity"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// watchTerminationGracePeriod is how long watches may take to end when the server is stopped.
const watchTerminationGracePeriod = 2 * time.Second

// Config is what the server is made of; every field is required.
type Config struct {
	Generic  *genericapiserver.RecommendedConfig
	Scheme   *runtime.Scheme
	Codecs   serializer.CodecFactory
	Issuer   identity.Issuer
	Lifetime identity.Lifetimes
	Tokens   tokenrequest.Tokens
	// ServiceAccounts reads the context objects of kind ServiceAccount, live.
	ServiceAccounts corev1client.ServiceAccountsGetter
	Recorder        tokenrequest.Recorder
}

// Prepare completes a generic configuration with what is particular to this server: OpenAPI, and answers that no cache
// may keep where they hold a token.
func Prepare(generic *genericapiserver.RecommendedConfig, scheme *runtime.Scheme) {
	namer := apiopenapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Credence"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Credence"
	generic.BuildHandlerChainFunc = buildHandlerChain
	// Watches never end by themselves: without a grace period of its own each would hold up the shutdown for a minute.
	generic.ShutdownWatchTerminationGracePeriod = watchTerminationGracePeriod
}

// New returns the server, ready to run.
func New(config Config) (*genericapiserver.GenericAPIServer, error) {
	server, err := config.Generic.Complete().New("credence-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("set up API server: %w", err)
	}
	identities, err := workloadidentity.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.Issuer)
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, config.Scheme, runtime.NewParameterCodec(config.Scheme), config.Codecs)
	group.NegotiatedSerializer = newNegotiation(config.Scheme, group.NegotiatedSerializer)
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"workloadidentities": identities,
		"workloadidentities/token": tokenrequest.NewREST(tokenrequest.Config{
			Identities: identities,
			Tokens:     config.Tokens,
			Issuer:     config.Issuer,
			Lifetimes:  config.Lifetime,
			Authorizer: config.Generic.Authorization.Authorizer,
			Contexts:   []tokenrequest.ContextKind{tokenrequest.ServiceAccounts(config.ServiceAccounts)},
			Recorder:   config.Recorder,
		}),
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install API group %s: %w", v1alpha1.GroupName, err)
	}
	return server, nil
}
