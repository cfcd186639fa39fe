package apiserver

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/openapi"
	"github.com/credence-id/credence/internal/apiserver/quotas"
	"github.com/credence-id/credence/internal/apiserver/registry/contextdelivery"
	"github.com/credence-id/credence/internal/apiserver/registry/contextkind"
	"github.com/credence-id/credence/internal/apiserver/registry/credentialsbinding"
	"github.com/credence-id/credence/internal/apiserver/registry/credentialsdata"
	keyringregistry "github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"github.com/credence-id/credence/internal/apiserver/registry/nodereview"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/internal/apiserver/registry/quotareview"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadcluster"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
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
	// Core reads service accounts, the pods of callers, and Secrets to which bindings refer, live.
	Core Core
	// Objects reads the context objects of ContextKinds, and what decides about the pods of a node.
	Objects dynamic.Interface
	// Usernames has the names of service accounts outside of the cluster.
	Usernames tokenrequest.Usernames
	Recorder  tokenrequest.Recorder
	// Keys carries out commands on the ring of keys; its View is not used.
	Keys keyring.Operator
	// Read reports of what else the server follows, by name, whether it has been read.
	Read map[string]func() bool
	// Resumed is called after an admin has accepted that keys or the storage were lost.
	Resumed func()
	// KeyRingChanged is called after the status of the KeyRing was written here.
	KeyRingChanged func()
}

// Core reads objects of the cluster.
type Core interface {
	corev1client.ServiceAccountsGetter
	corev1client.PodsGetter
	corev1client.SecretsGetter
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

// releaseEvery is how often identities that are being deleted are looked at.
const releaseEvery = 2 * time.Second

// reholdEvery is how often those are looked at to which bindings refer: they may have appeared.
const reholdEvery = 10 * time.Second

// releaseIdentities releases identities that are being deleted, once no CredentialsBinding refers to them, and holds those to which one refers.
func releaseIdentities(bindings *credentialsbinding.REST, identities *workloadidentity.REST) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook, func(ctx context.Context) {
			if err := bindings.Release(ctx, identities, time.Now()); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Identities that are being deleted could not be released, which is tried again")
			}
		}, releaseEvery)
		go wait.UntilWithContext(hook, func(ctx context.Context) {
			if err := bindings.Rehold(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "CredentialsBindings, or the identities to which they refer, could not be held, which is tried again")
			}
		}, reholdEvery)
		return nil
	}
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
	limits, err := quota.NewREST(config.Scheme, config.Generic.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	bindings, err := credentialsbinding.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, identities, limits, config.Generic.SharedInformerFactory.Core().V1().Namespaces().Lister(), config.Generic.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	rings, ringStatus, err := keyringregistry.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.Issuer, config.KeyRingChanged)
	if err != nil {
		return nil, err
	}
	workloadClusters, err := workloadcluster.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.Generic.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	index, sightings := clusters.New(workloadClusters), clusters.NewSightings(workloadClusters, clock.RealClock{})
	kinds, err := contextkind.NewREST(config.Scheme, config.Generic.RESTOptionsGetter, config.Generic.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	delivered := contextdelivery.NewIndex(time.Now())
	objects := contexts.New(kinds, config.Objects, delivered, clock.RealClock{})
	bindings.Objects = objects
	deliveries, err := contextdelivery.NewREST(contextdelivery.Config{
		Index: delivered, Identities: identities, Bindings: bindings, Clusters: index, Objects: objects, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	keeper, err := quotas.New(config.Generic.RESTOptionsGetter, limits, bindings, objects, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	accounts := tokenrequest.ServiceAccounts(config.Core, config.Usernames)
	tokens := tokenrequest.NewREST(tokenrequest.Config{
		Identities: identities,
		Bindings:   bindings,
		Tokens:     config.Tokens,
		Issuer:     config.Issuer,
		Lifetimes:  config.Lifetime,
		Authorizer: config.Generic.Authorization.Authorizer,
		Clusters:   index,
		Sightings:  sightings,
		Contexts:   []tokenrequest.ContextKind{accounts},
		Objects:    objects,
		Recorder:   config.Recorder,
		Clock:      clock.RealClock{},
	})
	data := credentialsdata.NewREST(credentialsdata.Config{
		Bindings: bindings, Clusters: index, Sightings: sightings, Objects: objects, Authorizer: config.Generic.Authorization.Authorizer, Secrets: config.Core,
	})
	reviews := tokenrequest.NewReviewREST(tokens, tokenrequest.Landscape{Bindings: bindings, Cluster: index.Named, Kind: objects.KindOf, Data: data, Deliveries: deliveries.Needed})
	commands := keyringregistry.Commands{KeyRings: rings, Operator: config.Keys}
	for _, served := range []struct {
		version schema.GroupVersion
		storage map[string]rest.Storage
	}{
		{v1alpha1.SchemeGroupVersion, map[string]rest.Storage{
			"credentialsbindings":          bindings,
			"credentialsbindings/data":     data,
			"credentialsbindings/delivery": workloadidentity.NewDeliveryREST(bindings.Reported(), config.Lifetime.Max, index, sightings, clock.RealClock{}),
			"quotas":                       limits,
			"workloadidentities":           identities,
			"workloadidentities/delivery":  workloadidentity.NewDeliveryREST(identities.Reported(deliveries.Delivers), config.Lifetime.Max, index, sightings, clock.RealClock{}),
			"workloadidentities/selftoken": tokenrequest.NewSelfREST(tokens, accounts, config.Core, identities.IssuedToPod),
			"workloadidentities/token":     tokens,
		}},
		{identityv1alpha1.SchemeGroupVersion, map[string]rest.Storage{
			"contextdeliveries":       deliveries,
			"contextkinds":            kinds,
			"contextreviews":          reviews,
			"keyrings":                rings,
			"quotareviews":            quotareview.NewREST(keeper),
			"keyrings/status":         ringStatus,
			"keyrings/rotation":       &keyringregistry.RotationREST{Commands: commands},
			"keyrings/revocation":     &keyringregistry.RevocationREST{Commands: commands},
			"keyrings/initialization": &keyringregistry.InitializationREST{Commands: commands, Resumed: config.Resumed},
			"nodereviews":             nodereview.NewREST(nodereview.Live(config.Objects, config.Generic.Authorization.Authorizer)),
			"workloadclusters":        workloadClusters,
		}},
	} {
		group := genericapiserver.NewDefaultAPIGroupInfo(served.version.Group, config.Scheme, runtime.NewParameterCodec(config.Scheme), config.Codecs)
		group.NegotiatedSerializer = newNegotiation(config.Scheme, group.NegotiatedSerializer)
		group.VersionedResourcesStorageMap[served.version.Version] = served.storage
		if err := server.InstallAPIGroup(&group); err != nil {
			return nil, fmt.Errorf("install API group %s: %w", served.version.Group, err)
		}
	}
	for name, hook := range map[string]genericapiserver.PostStartHookFunc{
		"take-uids":          takeUIDs(identities),
		"release-identities": releaseIdentities(bindings, identities),
		"follow-workload-clusters": func(hook genericapiserver.PostStartHookContext) error {
			go index.Run(hook)
			go sightings.Run(hook)
			return nil
		},
		"follow-context-objects": func(hook genericapiserver.PostStartHookContext) error {
			go objects.Run(hook)
			deliveries.Run(hook)
			return nil
		},
		"settle-quotas": func(hook genericapiserver.PostStartHookContext) error {
			go keeper.Run(hook)
			return nil
		},
	} {
		if err := server.AddPostStartHook(name, hook); err != nil {
			return nil, fmt.Errorf("add hook %s: %w", name, err)
		}
	}
	read := map[string]func() bool{"workload clusters": index.HasSynced, "context objects": objects.HasSynced, "deliveries": deliveries.HasSynced, "bindings": keeper.HasSynced}
	maps.Copy(read, config.Read)
	if err := server.AddReadyzChecks(&reads{clock: clock.RealClock{}, of: read}); err != nil {
		return nil, fmt.Errorf("add check of what is followed: %w", err)
	}
	return &Server{GenericAPIServer: server, KeyRings: rings, identities: identities}, nil
}
