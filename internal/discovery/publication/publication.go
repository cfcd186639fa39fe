// Package publication puts the documents of an issuer where the discovery server finds them. In go documents made from
// the ring's public keys, out come a ConfigMap or files with the same bytes. It never sees a private key.
package publication

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"k8s.io/utils/clock"
)

// Place is where documents are published. Publish does nothing where they stand already, and says whether it did something.
type Place interface {
	Publish(ctx context.Context, documents discovery.Documents) (changed bool, err error)
	String() string
}

// recheck is how often a place is looked at again: whoever overwrites documents that relying parties need is undone.
const recheck = time.Minute

// backoff is how long the publisher waits after the first failure; it doubles up to recheck.
const backoff = 500 * time.Millisecond

// Publisher keeps documents published in all its places.
type Publisher struct {
	places    []Place
	documents func() (discovery.Documents, error)
	clock     clock.Clock
	log       *slog.Logger
	published atomic.Bool
}

// NewPublisher returns a publisher of what documents returns.
func NewPublisher(places []Place, documents func() (discovery.Documents, error), clock clock.Clock, log *slog.Logger) *Publisher {
	return &Publisher{places: places, documents: documents, clock: clock, log: log}
}

// Run publishes until ctx is done: at once, again soon after a failure, and every minute.
func (p *Publisher) Run(ctx context.Context) {
	wait := backoff
	for {
		next := recheck
		if err := p.publish(ctx); err != nil {
			p.log.WarnContext(ctx, "documents were not published", "err", err, "retryIn", wait.String())
			next, wait = wait, min(2*wait, recheck)
		} else {
			p.published.Store(true)
			wait = backoff
		}
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(next):
		}
	}
}

func (p *Publisher) publish(ctx context.Context) error {
	documents, err := p.documents()
	if err != nil {
		return fmt.Errorf("make documents: %w", err)
	}
	for _, place := range p.places {
		changed, err := place.Publish(ctx, documents)
		if err != nil {
			return fmt.Errorf("publish in %s: %w", place, err)
		}
		if changed && p.published.Load() {
			p.log.WarnContext(ctx, "documents had been changed by somebody else, and were published again", "place", place.String())
		} else if changed {
			p.log.InfoContext(ctx, "documents published", "place", place.String())
		}
	}
	return nil
}

// Name implements healthz.HealthChecker of k8s.io/apiserver.
func (*Publisher) Name() string { return "documents-published" }

// Check fails until the documents have been published once: before that, no relying party could know a key.
func (p *Publisher) Check(*http.Request) error {
	if !p.published.Load() {
		return fmt.Errorf("the discovery documents have not been published yet")
	}
	return nil
}
