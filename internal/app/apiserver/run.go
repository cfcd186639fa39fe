package apiserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keystore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
)

// startupTimeout bounds what the server asks of its cluster before it serves.
const startupTimeout = 30 * time.Second

// Run serves until ctx ends or a part that it cannot do without fails.
func Run(ctx context.Context, o *Options, scheme *runtime.Scheme, codecs serializer.CodecFactory, log *slog.Logger) error {
	c, err := o.check()
	if err != nil {
		return err
	}
	ring, err := loadRing(ctx, o.KeysDir, log)
	if err != nil {
		return err
	}
	stopped := ctx.Err
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.EtcdDataDir != "" {
		etcd, err := storage.Start(ctx, o.EtcdDataDir)
		if err != nil {
			return err
		}
		defer etcd.Stop()
		o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
		go func() {
			select {
			case err := <-etcd.Failed():
				cancel(fmt.Errorf("embedded etcd ended: %w", err))
			case <-ctx.Done():
			}
		}()
	}
	server, err := assemble(ctx, o, c, ring, scheme, codecs, log)
	if err != nil {
		return err
	}
	if err := server.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if stopped() != nil {
		return nil
	}
	return context.Cause(ctx)
}

func loadRing(ctx context.Context, dir string, log *slog.Logger) (keys.Ring, error) {
	store, err := keystore.OpenDirectory(dir)
	if err != nil {
		return keys.Ring{}, fmt.Errorf("open key store: %w", err)
	}
	if _, _, err := store.Load(ctx); errors.Is(err, keystore.ErrNotFound) {
		log.WarnContext(ctx, "no signing keys found: making new ones; tokens signed by others before are valid no longer", "keysDir", dir)
	}
	ring, _, err := keystore.LoadOrBootstrap(ctx, store, keys.NewPrivate, time.Now())
	if err != nil {
		return keys.Ring{}, fmt.Errorf("load signing keys: %w", err)
	}
	return ring, nil
}

func assemble(ctx context.Context, o *Options, c checked, ring keys.Ring, scheme *runtime.Scheme, codecs serializer.CodecFactory, log *slog.Logger) (*genericapiserver.GenericAPIServer, error) {
	generic, err := genericConfig(o, scheme, codecs)
	if err != nil {
		return nil, err
	}
	// No limit of our own: it would be shared by all callers. What they may ask for is limited where they come in.
	clientConfig := rest.CopyConfig(generic.ClientConfig)
	clientConfig.QPS = -1
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	startup, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	if err := apiserver.CheckHostCluster(startup, client.Discovery().RESTClient(), c.issuer, ring.Published()); err != nil {
		return nil, err
	}
	gardenID := o.GardenID
	if gardenID == "" {
		namespace, err := client.CoreV1().Namespaces().Get(startup, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("find the garden id, the uid of namespace %s: %w; or set --garden-id", metav1.NamespaceSystem, err)
		}
		gardenID = string(namespace.UID)
	}
	tokens, err := issuer.New(issuer.Config{
		Issuer: c.issuer, GardenID: gardenID, Lifetimes: c.lifetimes,
		Ring: func() keys.Ring { return ring }, Clock: time.Now, Random: rand.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("set up issuer: %w", err)
	}
	recorder, err := apiserver.NewMetrics(legacyregistry.Register)
	if err != nil {
		return nil, err
	}
	publisher := publication.NewPublisher(places(o, c, client), func() (discovery.Documents, error) {
		return discovery.New(c.issuer, ring.Published())
	}, clock.RealClock{}, log)
	generic.AddReadyzChecks(publisher)
	if err := generic.AddPostStartHook("publish-discovery-documents", func(hook genericapiserver.PostStartHookContext) error {
		go publisher.Run(hook)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("add publisher: %w", err)
	}
	return apiserver.New(apiserver.Config{
		Generic: generic, Scheme: scheme, Codecs: codecs,
		Issuer: c.issuer, Lifetime: c.lifetimes, Tokens: tokens,
		ServiceAccounts: client.CoreV1(), Recorder: recorder,
	})
}

func places(o *Options, c checked, client kubernetes.Interface) []publication.Place {
	var places []publication.Place
	if o.PublishConfigMap != "" {
		places = append(places, publication.ConfigMap{Client: client.CoreV1(), Namespace: c.configMap[0], Name: c.configMap[1]})
	}
	if o.PublishDir != "" {
		places = append(places, publication.Directory(o.PublishDir))
	}
	return places
}

func genericConfig(o *Options, scheme *runtime.Scheme, codecs serializer.CodecFactory) (*genericapiserver.RecommendedConfig, error) {
	if errs := o.Recommended.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("check flags: %w", errors.Join(errs...))
	}
	generic := genericapiserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	apiserver.Prepare(generic, scheme)
	removePolicy, err := apiserver.DefaultAuditPolicy(o.Recommended.Audit)
	if err != nil {
		return nil, err
	}
	defer removePolicy()
	if err := o.Recommended.ApplyTo(generic); err != nil {
		return nil, fmt.Errorf("apply flags: %w", err)
	}
	generic.AuditPolicyRuleEvaluator = apiserver.CapAudit(generic.AuditPolicyRuleEvaluator)
	generic.Authentication.Authenticator = apiserver.RefuseAnonymous(generic.Authentication.Authenticator)
	return generic, nil
}
