package apiserver

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/openapi"
	keyringregistry "github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
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
	// Usernames has the names of these outside of the cluster.
	Usernames tokenrequest.Usernames
	Recorder  tokenrequest.Recorder
	// Keys carries out commands on the ring of keys; its View is not used.
	Keys keyring.Operator
	// Resumed is called after an admin has accepted that keys or the storage were lost.
	Resumed func()
	// KeyRingChanged is called after the status of the KeyRing was written here.
	KeyRingChanged func()
}

// Server is the API server, with what else is made of its storage.
type Server struct {
	*genericapiserver.GenericAPIServer
	// KeyRings has the one KeyRing.
	KeyRings *keyringregistry.REST

	identities *workloadidentity.REST
}

// HasIdentities reports whether any WorkloadIdentity is stored.
func (s *Server) HasIdentities(ctx context.Context) (bool, error) {
	list, err := s.identities.List(request.WithNamespace(ctx, ""), &internalversion.ListOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	return meta.LenList(list) > 0, nil
}

// Prepare completes a generic configuration with what is particular to this server: OpenAPI, limits of bodies, and
// answers that no cache may keep where they hold a token.
func Prepare(generic *genericapiserver.RecommendedConfig, scheme *runtime.Scheme) {
	namer := apiopenapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Credence"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Credence"
	generic.BuildHandlerChainFunc = buildHandlerChain
	generic.MaxRequestBodyBytes, generic.JSONPatchMaxCopyBytes = maxBodyBytes, maxBodyBytes
	// Watches never end by themselves: without a grace period of its own each would hold up the shutdown for a minute.
	generic.ShutdownWatchTerminationGracePeriod = watchTerminationGracePeriod
}

// New returns the server, ready to run.
func New(config Config) (*Server, error) {
	server, err := config.Generic.Complete().New("credence-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("set up API server: %w", err)
	}
	identities, err := workloadidentity.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.Issuer, config.Generic.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	rings, ringStatus, err := keyringregistry.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.KeyRingChanged)
	if err != nil {
		return nil, err
	}
	commands := keyringregistry.Commands{KeyRings: rings, Operator: config.Keys}
	for _, served := range []struct {
		version schema.GroupVersion
		storage map[string]rest.Storage
	}{
		{v1alpha1.SchemeGroupVersion, map[string]rest.Storage{
			"workloadidentities":          identities,
			"workloadidentities/delivery": workloadidentity.NewDeliveryREST(identities, clock.RealClock{}),
			"workloadidentities/token": tokenrequest.NewREST(tokenrequest.Config{
				Identities: identities,
				Tokens:     config.Tokens,
				Issuer:     config.Issuer,
				Lifetimes:  config.Lifetime,
				Authorizer: config.Generic.Authorization.Authorizer,
				Contexts:   []tokenrequest.ContextKind{tokenrequest.ServiceAccounts(config.ServiceAccounts, config.Usernames)},
				Recorder:   config.Recorder,
				Clock:      clock.RealClock{},
			}),
		}},
		{identityv1alpha1.SchemeGroupVersion, map[string]rest.Storage{
			"keyrings":                rings,
			"keyrings/status":         ringStatus,
			"keyrings/rotation":       &keyringregistry.RotationREST{Commands: commands},
			"keyrings/revocation":     &keyringregistry.RevocationREST{Commands: commands},
			"keyrings/initialization": &keyringregistry.InitializationREST{Commands: commands, Resumed: config.Resumed},
		}},
	} {
		group := genericapiserver.NewDefaultAPIGroupInfo(served.version.Group, config.Scheme, runtime.NewParameterCodec(config.Scheme), config.Codecs)
		group.NegotiatedSerializer = newNegotiation(config.Scheme, group.NegotiatedSerializer)
		group.VersionedResourcesStorageMap[served.version.Version] = served.storage
		if err := server.InstallAPIGroup(&group); err != nil {
			return nil, fmt.Errorf("install API group %s: %w", served.version.Group, err)
		}
	}
	if err := server.AddPostStartHook("take-uids", takeUIDs(identities)); err != nil {
		return nil, fmt.Errorf("add hook take-uids: %w", err)
	}
	return &Server{GenericAPIServer: server, KeyRings: rings, identities: identities}, nil
}
