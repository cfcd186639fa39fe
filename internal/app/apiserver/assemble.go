package apiserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keyring"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
)

// assembly is what the server is put together from.
type assembly struct {
	o *Options
	checked
	client kubernetes.Interface
	ring   *keyring.Follower
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	log    *slog.Logger
}

func (a assembly) assemble(ctx context.Context) (*apiserver.Server, error) {
	generic, err := a.genericConfig()
	if err != nil {
		return nil, err
	}
	startup, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	first, _ := a.ring.Newest()
	if err := apiserver.CheckHostCluster(startup, a.client.Discovery().RESTClient(), a.issuer, first.Ring.Published()); err != nil {
		return nil, err
	}
	gardenID := a.o.GardenID
	if gardenID == "" {
		namespace, err := a.client.CoreV1().Namespaces().Get(startup, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("find the garden id, the uid of namespace %s: %w; or set --garden-id", metav1.NamespaceSystem, err)
		}
		gardenID = string(namespace.UID)
	}
	tokens, err := issuer.New(issuer.Config{
		Issuer: a.issuer, GardenID: gardenID, Lifetimes: a.lifetimes, Ring: a.ring.Signing, Clock: time.Now, Random: rand.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("set up issuer: %w", err)
	}
	recorder, err := apiserver.NewMetrics(legacyregistry.Register)
	if err != nil {
		return nil, err
	}
	legacyregistry.RawMustRegister(apiserver.RingAge(func() time.Duration { return time.Since(a.ringReadAt()) }))
	var publisher *publication.Publisher
	var server *apiserver.Server
	publisher = publication.NewPublisher(a.places(), func(ctx context.Context) (publication.Issue, error) {
		return a.issue(ctx, server)
	}, clock.RealClock{}, a.log)
	generic.AddReadyzChecks(publisher)
	for name, hook := range map[string]genericapiserver.PostStartHookFunc{
		"make-key-ring": func(hook genericapiserver.PostStartHookContext) error {
			go a.ensureKeyRing(hook, server, publisher.Nudge)
			return nil
		},
		"follow-key-ring": func(hook genericapiserver.PostStartHookContext) error {
			go func() { _ = a.ring.Run(hook) }() // the interval was checked with the options
			return nil
		},
		"publish-discovery-documents": func(hook genericapiserver.PostStartHookContext) error {
			go publisher.Run(hook)
			go nudge(hook, a.ring.Changed(), publisher.Nudge)
			return nil
		},
	} {
		if err := generic.AddPostStartHook(name, hook); err != nil {
			return nil, fmt.Errorf("add hook %s: %w", name, err)
		}
	}
	server, err = apiserver.New(apiserver.Config{
		Generic: generic, Scheme: a.scheme, Codecs: a.codecs,
		Issuer: a.issuer, Lifetime: a.lifetimes, Tokens: tokens,
		ServiceAccounts: a.client.CoreV1(), Recorder: recorder,
		Keys:           keyring.Operator{Store: a.ring.Store, Clock: clock.RealClock{}, Generate: keys.NewPrivate, Done: a.ring.Nudge},
		KeyRingChanged: publisher.Nudge,
	})
	return server, err
}

// issue is what is published: the keys of the last good ring, whatever the store says by now, and when they change next.
func (a assembly) issue(ctx context.Context, server *apiserver.Server) (publication.Issue, error) {
	newest, _ := a.ring.Newest()
	documents, err := discovery.New(a.issuer, newest.Ring.Published())
	if err != nil {
		return publication.Issue{}, err
	}
	issue := publication.Issue{Documents: documents}
	object, err := server.KeyRings.KeyRing(ctx, identityv1alpha1.WorkloadIdentities)
	switch {
	case err != nil:
		// Keys are published without asking anything of the storage; for how long they may be kept can not be said.
		issue.NextChange = time.Unix(0, 0)
	case object.Status.NextChange != nil:
		issue.NextChange = object.Status.NextChange.Time
	}
	return issue, nil
}

// ringReadAt is when the ring was read last without an error.
func (a assembly) ringReadAt() time.Time {
	newest, _ := a.ring.Newest()
	return newest.ReadAt
}

// ensureKeyRing makes the one KeyRing, again and again until the storage can be written.
func (a assembly) ensureKeyRing(ctx context.Context, server *apiserver.Server, made func()) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := server.KeyRings.Ensure(ctx, identityv1alpha1.WorkloadIdentities)
		if err == nil {
			made()
			return
		}
		a.log.WarnContext(ctx, "the KeyRing is not there yet", "err", err, "retryIn", pause.String())
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// nudge passes on that something has changed.
func nudge(ctx context.Context, changed <-chan struct{}, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			do()
		}
	}
}

func (a assembly) places() []publication.Place {
	var places []publication.Place
	if a.o.PublishConfigMap != "" {
		places = append(places, publication.ConfigMap{Client: a.client.CoreV1(), Namespace: a.configMap.Namespace, Name: a.configMap.Name})
	}
	if a.o.PublishDir != "" {
		places = append(places, publication.Directory(a.o.PublishDir))
	}
	return places
}

func (a assembly) genericConfig() (*genericapiserver.RecommendedConfig, error) {
	if errs := a.o.Recommended.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("check flags: %w", errors.Join(errs...))
	}
	generic := genericapiserver.NewRecommendedConfig(a.codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	apiserver.Prepare(generic, a.scheme)
	removePolicy, err := apiserver.DefaultAuditPolicy(a.o.Recommended.Audit)
	if err != nil {
		return nil, err
	}
	defer removePolicy()
	if err := a.o.Recommended.ApplyTo(generic); err != nil {
		return nil, fmt.Errorf("apply flags: %w", err)
	}
	generic.AuditPolicyRuleEvaluator = apiserver.CapAudit(generic.AuditPolicyRuleEvaluator)
	generic.Authentication.Authenticator = apiserver.RefuseAnonymous(apiserver.RememberCertificates(generic.Authentication.Authenticator, generic.Authentication.RequestHeaderConfig, clock.RealClock{}))
	generic.Authorization.Authorizer = apiserver.ReviewOnce(generic.Authorization.Authorizer)
	return generic, nil
}
