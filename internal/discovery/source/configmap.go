package source

import (
	"context"
	"errors"
	"fmt"
	"github.com/credence-id/credence/internal/discovery"
	"log/slog"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// ConfigMap reads the documents from the keys openid-configuration.json and jwks.json of one ConfigMap, which it lists
// and watches by name. It needs no API to start: the last good documents are kept in a folder, and requests to the API are
// repeated with a growing, jittered pause.
type ConfigMap struct {
	namespace, name string
	client          rest.Interface
	cache           documentsCache
	backoff         wait.Backoff
	log             *slog.Logger
}

// listTimeout is for an API that takes the connection and does not answer; a watch ends by itself.
const listTimeout = 30 * time.Second

// NewConfigMap prepares the client of an API, without a request. cacheFolder may be empty: then nothing is kept.
func NewConfigMap(config *rest.Config, namespace, name, cacheFolder string, log *slog.Logger) (*ConfigMap, error) {
	client, err := coreClient(config)
	if err != nil {
		return nil, fmt.Errorf("prepare Kubernetes client: %w", err)
	}
	return &ConfigMap{
		namespace: namespace,
		name:      name,
		client:    client,
		cache:     documentsCache{folder: cacheFolder},
		backoff:   wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second},
		log:       log.With("configMap", namespace+"/"+name),
	}, nil
}

// coreClient knows the core group alone: all of Kubernetes' types would be most of this program's memory.
func coreClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	return rest.RESTClientFor(config)
}

// Run publishes what is cached, then the documents of the ConfigMap and each change of them, until ctx is done.
func (c *ConfigMap) Run(ctx context.Context, publisher Publisher) error {
	follower := &follower{source: c, feed: &feed{publisher: publisher, log: c.log}}
	follower.fromCache()
	// The follower logs the reflector's errors, once per outage.
	silent := klog.New(nil)
	reflector := cache.NewReflectorWithOptions(follower, &corev1.ConfigMap{}, follower, cache.ReflectorOptions{
		Logger:  &silent,
		Name:    "documents",
		Backoff: &c.backoff,
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
	return nil
}

// follower is what the reflector lists and watches with, and where it stores what it finds.
type follower struct {
	source *ConfigMap
	feed   *feed
	last   *corev1.ConfigMap
}

func (f *follower) fromCache() {
	f.feed.recall(f.source.cache.revoked())
	configuration, jwks, err := f.source.cache.load()
	switch {
	case err != nil:
		f.source.log.Warn("cached documents cannot be used, waiting for the API", "error", err)
	case configuration != nil:
		// How old they are is not known.
		f.feed.offer(found{configuration: configuration, jwks: jwks, nextChange: anyMoment().Format(time.RFC3339)})
	}
}

// IsWatchListSemanticsUnSupported makes the reflector list: its streaming lists do not end with their context while the
// API is away, and one object needs no stream.
func (f *follower) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext implements cache.ListerWithContext.
func (f *follower) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	// A read from an API server's cache may be old, and would take back a key that is published.
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	list, err := f.request(&options).Do(ctx).Get()
	f.logOutage(ctx, err)
	return list, err
}

// WatchWithContext implements cache.WatcherWithContext.
func (f *follower) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	watching, err := f.request(&options).Watch(ctx)
	f.logOutage(ctx, err)
	if err == nil && f.last != nil && f.feed.failing() {
		f.consider(f.last)
	}
	return watching, err
}

// List implements cache.Lister.
func (f *follower) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

// Watch implements cache.Watcher.
func (f *follower) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

func (f *follower) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.source.name).String()
	return f.source.client.Get().Namespace(f.source.namespace).Resource("configmaps").VersionedParams(options, metav1.ParameterCodec)
}

// logOutage logs an outage when it begins and when its cause changes. An expired watch is not an outage: a list follows.
func (f *follower) logOutage(ctx context.Context, err error) {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	cause := err.Error()
	if request, ok := errors.AsType[*url.Error](err); ok {
		cause = request.Err.Error()
	}
	f.feed.fail(cause, fmt.Errorf("read ConfigMap %s/%s: %w", f.source.namespace, f.source.name, err))
}

// consider publishes what a ConfigMap holds.
func (f *follower) consider(configMap *corev1.ConfigMap) {
	f.last = configMap
	for _, key := range []string{discovery.ConfigurationKey, discovery.JWKSKey} {
		if _, present := configMap.Data[key]; !present {
			err := fmt.Errorf("ConfigMap %s/%s has no key %s", f.source.namespace, f.source.name, key)
			f.feed.fail(err.Error(), err)
			return
		}
	}
	configuration, jwks := []byte(configMap.Data[discovery.ConfigurationKey]), []byte(configMap.Data[discovery.JWKSKey])
	accepted := f.feed.offer(found{configuration, jwks, configMap.Data[discovery.NextChangeKey], configMap.Data[discovery.RevokedKey]})
	if err := f.source.cache.saveRevoked(f.feed.remembered()); err != nil {
		f.source.log.Error("revoked keys are not remembered beyond the end of this process", "error", err)
	}
	if !accepted {
		return
	}
	if err := f.source.cache.save(configuration, jwks); err != nil {
		f.source.log.Error("documents are served but not cached, a start without the API would have none or older ones", "error", err)
	}
}

func (f *follower) missing() {
	f.last = nil
	err := fmt.Errorf("ConfigMap %s/%s does not exist", f.source.namespace, f.source.name)
	f.feed.fail(err.Error(), err)
}
