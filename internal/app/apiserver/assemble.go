package apiserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
	"github.com/credence-id/credence/internal/apiserver/usernames"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/tracing"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring/keys"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
)

// assembly is what the server is put together from.
type assembly struct {
	o *Options
	checked
	client kubernetes.Interface
	// objects reads objects of any kind.
	objects dynamic.Interface
	// usernames has the names of the cluster's service accounts outside of it.
	usernames *usernames.Follower
	// stored is the client of the storage in the cluster; nil: the storage is an etcd.
	stored rest.Interface
	// mac authenticates what is stored there.
	mac *cluster.MAC
	keySource
	traces *tracing.Provider // nil: none
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	log    *slog.Logger
	begun  *beginning
	// fail ends the server with an error.
	fail context.CancelCauseFunc
}

func (a assembly) assemble(ctx context.Context) (*apiserver.Server, error) {
	generic, err := a.genericConfig()
	if err != nil {
		return nil, err
	}
	startup, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	if err := apiserver.CheckHostCluster(startup, a.client.Discovery().RESTClient(), a.issuer, a.atStart()); err != nil {
		return nil, err
	}
	// The cluster's configuration may mean it so: it is reported, and prevents nothing.
	switch trusts, err := apiserver.HostTrusts(startup, a.client.AuthenticationV1().TokenReviews(), a.issuer); {
	case err != nil:
		a.log.WarnContext(ctx, "whether the cluster trusts the issuer of workload identities is not known", "err", err)
	case trusts:
		a.log.WarnContext(ctx, "the cluster trusts the issuer of workload identities: users who may create identities and their tokens can become users of the cluster; remove the issuer from the AuthenticationConfiguration of its API server unless that is meant", "issuer", string(a.issuer))
	}
	gardenID := a.o.GardenID
	if gardenID == "" {
		namespace, err := a.client.CoreV1().Namespaces().Get(startup, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("find the garden id, the uid of namespace %s: %w; or set --garden-id", metav1.NamespaceSystem, err)
		}
		gardenID = string(namespace.UID)
	}
	config := issuer.Config{Issuer: a.issuer, GardenID: gardenID, Lifetimes: a.lifetimes, Clock: time.Now, Random: rand.Reader}
	a.sign(&config)
	tokens, err := issuer.New(config)
	if err != nil {
		return nil, fmt.Errorf("set up issuer: %w", err)
	}
	recorder, err := apiserver.NewMetrics(legacyregistry.Register)
	if err != nil {
		return nil, err
	}
	legacyregistry.RawMustRegister(serving.BuildInfo())
	legacyregistry.RawMustRegister(apiserver.RingAge(func() time.Duration { return time.Since(a.readAt()) }))
	var publisher *publication.Publisher
	var server *apiserver.Server
	a.begun = newBeginning()
	a.remember(func() *apiserver.Server { return server })
	publisher = publication.NewPublisher(places(a.o, a.checked, a.client), func(ctx context.Context) (publication.Issue, error) {
		return a.issue(ctx, server)
	}, clock.RealClock{}, a.log)
	generic.AddReadyzChecks(publisher, healthz.NamedCheck("signing-keys", func(*http.Request) error { return a.unready() }))
	generic.BuildHandlerChainFunc = a.begun.guard(generic.BuildHandlerChainFunc)
	for name, hook := range map[string]genericapiserver.PostStartHookFunc{
		"make-key-ring": func(hook genericapiserver.PostStartHookContext) error {
			go a.begin(hook, server, publisher.Nudge)
			return nil
		},
		"keep-storage": func(hook genericapiserver.PostStartHookContext) error {
			go a.keep(hook, server)
			return nil
		},
		"follow-profiles": func(hook genericapiserver.PostStartHookContext) error {
			go a.usernames.Run(hook)
			return nil
		},
		"follow-signing-keys": func(hook genericapiserver.PostStartHookContext) error {
			go a.run(hook, publisher.Nudge)
			return nil
		},
		"publish-discovery-documents": func(hook genericapiserver.PostStartHookContext) error {
			go func() {
				a.awaitKeys(hook)
				publisher.Run(hook)
			}()
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
		Core: a.client.CoreV1(), Objects: a.objects, Usernames: a.usernames, Recorder: recorder,
		Keys:           a.operator(),
		KeyRingChanged: publisher.Nudge,
		Read: map[string]func() bool{
			"past of the issuer":           func() bool { return a.begun.empty.Load() == nil },
			"profiles of service accounts": a.usernames.HasSynced,
			"signing keys":                 func() bool { return a.unready() == nil },
			"published documents":          func() bool { return publisher.Check(nil) == nil },
		},
		Resumed: a.begun.confirmed,
	})
	if err != nil {
		return nil, err
	}
	return server, a.own(ctx, server)
}

// issue is what is published, and when it changes next.
func (a assembly) issue(ctx context.Context, server *apiserver.Server) (publication.Issue, error) {
	// A process that slept, or cannot read its keys, must not put back what others have taken away meanwhile.
	if read := a.readAt(); !read.IsZero() && !(keys.Terms{}).MaySign(read, time.Now()) {
		return publication.Issue{}, fmt.Errorf("the keys were read last at %s: what is published stays", read.UTC().Format(time.RFC3339))
	}
	published := a.published()
	if len(published) == 0 {
		return a.withoutKeys(ctx)
	}
	documents, err := discovery.New(a.issuer, published)
	if err != nil {
		return publication.Issue{}, err
	}
	issue := publication.Issue{Documents: documents}
	for _, gone := range a.revoked() {
		issue.Revoked = append(issue.Revoked, revokedKey(gone))
	}
	object, err := server.KeyRings.KeyRing(ctx, identityv1alpha1.WorkloadIdentities)
	switch {
	case err != nil:
		// Keys are published without a request to the storage: for how long they may be kept is unknown.
		issue.NextChange = time.Unix(0, 0)
	case object.Status.NextChange != nil:
		issue.NextChange = object.Status.NextChange.Time
	}
	return issue, nil
}

func places(o *Options, c checked, client kubernetes.Interface) []publication.Place {
	var places []publication.Place
	if o.PublishConfigMap != "" {
		places = append(places, publication.ConfigMap{Client: client.CoreV1(), Namespace: c.configMap.Namespace, Name: c.configMap.Name})
	}
	if o.PublishDir != "" {
		places = append(places, publication.Directory(o.PublishDir))
	}
	return places
}

// documentsGate knows the keys that stand in every place.
func documentsGate(ctx context.Context, places []publication.Place, issuer identity.Issuer) *keys.Gate {
	gate := &keys.Gate{}
	for i, place := range places {
		found, err := place.Keys(ctx, issuer)
		if err != nil {
			found = nil // what can not be read shows nothing
		}
		if i == 0 {
			gate.Name, gate.Knows = place.String(), found
			continue
		}
		gate.Name += ", " + place.String()
		gate.Knows = slices.DeleteFunc(gate.Knows, func(id identity.KeyID) bool { return !slices.Contains(found, id) })
	}
	return gate
}

func (a assembly) genericConfig() (*genericapiserver.RecommendedConfig, error) {
	recommended := *a.o.Recommended
	recommended.Etcd.WatchCacheSizes = append(recommended.Etcd.WatchCacheSizes, apiserver.Uncached...)
	if a.stored != nil {
		recommended.Etcd = nil
	}
	var kept apiserver.Kept
	recommended.Authorization, kept = apiserver.KeepReviews(recommended.Authorization)
	if errs := recommended.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("check flags: %w", errors.Join(errs...))
	}
	generic := genericapiserver.NewRecommendedConfig(a.codecs)
	generic.EffectiveVersion = effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
	apiserver.Prepare(generic, a.scheme)
	a.trace(&generic.Config, &recommended)
	removePolicy, err := apiserver.DefaultAuditPolicy(a.o.Recommended.Audit)
	if err != nil {
		return nil, err
	}
	defer removePolicy()
	if err := recommended.ApplyTo(generic); err != nil {
		return nil, fmt.Errorf("apply flags: %w", err)
	}
	if a.stored != nil {
		generic.RESTOptionsGetter = cluster.RESTOptions(a.o.Recommended.Etcd, a.stored, a.mac)
	}
	generic.AuditPolicyRuleEvaluator = apiserver.CapAudit(generic.AuditPolicyRuleEvaluator)
	generic.AuditBackend = apiserver.BoundAudit(generic.AuditBackend)
	proxy := generic.Authentication.RequestHeaderConfig
	remembering := apiserver.RememberCertificates(generic.Authentication.Authenticator, proxy, clock.RealClock{})
	direct := a.withoutTrace(remembering)
	generic.Authentication.Authenticator = apiserver.GrowStack(apiserver.RefuseAnonymous(apiserver.RememberFrontProxy(direct, proxy, clock.RealClock{})))
	generic.Authorization.Authorizer = apiserver.ReviewOnce(generic.Authorization.Authorizer, kept, clock.RealClock{})
	generic.AdmissionControl = apiserver.GrowStackOfWrites(generic.AdmissionControl)
	return generic, nil
}
