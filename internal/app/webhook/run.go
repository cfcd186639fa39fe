package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/tracing"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/gmsa/credentialspecs"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/workloadidentities"
)

// Run answers reviews until ctx is done, then those in flight, and returns nil. An error is a configuration that can not work,
// or a server that stopped by itself.
func Run(ctx context.Context, config Config) error {
	p, err := assemble(ctx, config)
	if err != nil {
		return err
	}
	klog.SetSlogLogger(p.config.Log) // what the libraries of Kubernetes log
	return p.run(ctx)
}

// program is all that runs; it listens already.
type program struct {
	config     Config
	identities *workloadidentities.Follower
	specs      *credentialspecs.Follower // nil: without gMSA
	reviews    *serving.Server
	health     *serving.Server // nil: none
	pair       *source.KeyPair
	clients    *authorities      // nil: no certificate is requested
	paths      *webhook.Paths    // nil: the API server shows a certificate
	traces     *tracing.Provider // nil: none
}

func assemble(ctx context.Context, config Config) (*program, error) {
	c, err := config.check()
	if err != nil {
		return nil, serving.Usage(err)
	}
	traces, err := tracing.New(ctx, c.TracingConfig, "credence-webhook")
	if err != nil {
		return nil, serving.Usage(err)
	}
	clusters, err := connect(c, traces)
	if err != nil {
		return nil, err
	}
	identities, err := workloadidentities.New(clusters.identity, nil)
	if err != nil {
		return nil, err
	}
	pair, err := source.NewKeyPair(c.TLSCertFile, c.TLSPrivateKeyFile, (*discovery.Recorder)(nil), c.Log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	profiles, err := webhook.LiveProfiles(clusters.specs)
	if err != nil {
		return nil, err
	}
	quotas, err := webhook.LiveQuotas(clusters.specs)
	if err != nil {
		return nil, err
	}
	registry := serving.NewRegistry()
	p := &program{config: c, identities: identities, pair: pair, traces: traces}
	needs := webhook.Needs{
		ServiceAccounts: webhook.LiveServiceAccounts(clusters.workload),
		Profiles:        profiles,
		Quotas:          quotas,
		Workloads:       webhook.LiveWorkloads(clusters.workload),
		RuntimeClasses:  webhook.LiveRuntimeClasses(clusters.workload),
		Namespaces:      webhook.LiveNamespaces(clusters.workload),
		Delivery:        c.Delivery,
		Pods:            webhook.LivePods(clusters.workload),
		Authorizer:      authority.Cluster(clusters.workload.AuthorizationV1().SubjectAccessReviews()),
		Identities:      identities,
		GMSA:            c.GMSA.needs(),
		Adapters:        targets.For,
		Agent:           c.AgentUser,
		Recorder:        webhook.NewRecorder(registry),
		Log:             c.Log,
		Now:             time.Now,
	}
	if !c.GMSA.Off {
		if p.specs, err = credentialspecs.New(clusters.specs, time.Now, c.Log); err != nil {
			return nil, err
		}
		registerSpecs(registry, p.specs)
		needs.CredentialSpecs = p.specs
	}
	handler := traces.Handler(webhook.New(needs), "admission review") // behind the secret paths, which no span may have
	if c.ClientCAFile == "" {
		p.paths = webhook.NewPaths(clusters.objects, c.ReviewPathPeriod, time.Now, rand.Reader, c.Log)
		handler = p.paths.Handler(handler)
	} else {
		handler = webhook.AtAnyPath(handler)
	}
	listener, err := serving.Listen(ctx, c.BindAddress, "--port", c.Port)
	if err != nil {
		return nil, err
	}
	if p.reviews, p.clients, err = newServer(listener, handler, pair, c); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if c.HealthPort == 0 {
		return p, nil
	}
	healthListener, err := serving.Listen(ctx, c.BindAddress, "--health-port", c.HealthPort)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// It is ready once it knows what there is, and stays so while it listens: through an outage of an API its answers have what
	// is wrong, which an endpoint that is gone could not.
	p.health = serving.New("health", healthListener, serving.NewHealth(p.ready, registry, &serving.MetricsReaders{Cluster: clusters.specs, Anonymous: c.AnonymousMetrics}), pair, c.Log)
	return p, nil
}

func (p *program) ready() error {
	if p.paths != nil {
		if err := p.paths.Ready(); err != nil {
			return err
		}
	}
	if p.specs != nil {
		return p.specs.Ready()
	}
	return nil
}

func (p *program) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.identities.Run(ctx) })
	if p.specs != nil {
		group.Go(func() error { return p.specs.Run(ctx) })
	}
	group.Go(func() error { return p.pair.Run(ctx) })
	if p.clients != nil {
		group.Go(func() error { return p.clients.Run(ctx) })
	}
	if p.paths != nil {
		group.Go(func() error { return p.paths.Run(ctx) })
	}
	group.Go(func() error { return p.reviews.Run(ctx) })
	if p.health != nil {
		group.Go(func() error { return p.health.Run(ctx) })
	}
	err := group.Wait()
	if lost := p.traces.Shutdown(context.WithoutCancel(ctx)); lost != nil {
		p.config.Log.Warn("spans were lost", "error", lost)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	p.config.Log.Info("webhook stopped")
	return nil
}
