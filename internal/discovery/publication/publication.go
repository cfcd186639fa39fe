// Package publication puts the documents of an issuer where the discovery server finds them. In go documents made from
// the ring's public keys, out come a ConfigMap or files with the same bytes. It never sees a private key.
package publication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"k8s.io/utils/clock"
)

// Issue is what is published: documents, and when they change next.
type Issue struct {
	discovery.Documents
	// NextChange is zero if it is not known.
	NextChange time.Time
	// Revoked are the keys that were revoked. They are kept beside the documents, and are never in them.
	Revoked []discovery.Revoked
}

// data is an issue by the names under which it is kept.
func (i Issue) data() map[string]string {
	next := ""
	if !i.NextChange.IsZero() {
		next = i.NextChange.UTC().Format(time.RFC3339)
	}
	data := map[string]string{
		discovery.ConfigurationKey: string(i.Configuration()),
		discovery.JWKSKey:          string(i.JWKS()),
		discovery.NextChangeKey:    next,
	}
	if len(i.Revoked) > 0 {
		data[discovery.RevokedKey] = discovery.EncodeRevoked(i.Revoked)
	}
	return data
}

// Place is where documents are published. Publish does nothing if they are there already, and reports whether it did something.
type Place interface {
	Publish(ctx context.Context, issue Issue) (changed bool, err error)
	// Keys are those of the documents that stand there, in their order. Documents that a discovery server would refuse to
	// serve are an error: they publish nothing.
	Keys(ctx context.Context, issuer identity.Issuer) ([]identity.KeyID, error)
	// Standing is what is there, whether or not it can be served.
	Standing(ctx context.Context, issuer identity.Issuer) (Standing, error)
	String() string
}

// Standing is what stands in a place.
type Standing struct {
	// Documents are zero if they are missing or cannot be served.
	Documents discovery.Documents
	// Revoked are the keys that are remembered as revoked.
	Revoked []discovery.Revoked
	// Empty is set where nothing was ever published.
	Empty bool
}

// standing reads the stored documents of a place. Unreadable ones count as present.
func standing(issuer identity.Issuer, data map[string]string) Standing {
	found := Standing{Empty: data[discovery.JWKSKey] == "" && data[discovery.ConfigurationKey] == "" && data[discovery.RevokedKey] == ""}
	if documents, err := discovery.Parse(issuer, []byte(data[discovery.ConfigurationKey]), []byte(data[discovery.JWKSKey])); err == nil {
		found.Documents = documents
	}
	if revoked, err := discovery.ParseRevoked(data[discovery.RevokedKey]); err == nil {
		found.Revoked = revoked
	}
	return found
}

func keysIn(issuer identity.Issuer, configuration, jwks []byte) ([]identity.KeyID, error) {
	documents, err := discovery.Parse(issuer, configuration, jwks)
	if err != nil {
		return nil, fmt.Errorf("the published documents cannot be served: %w", err)
	}
	return documents.KeyIDs(), nil
}

// recheck is how often a place is checked again: overwritten documents that relying parties need are restored.
const recheck = time.Minute

// backoff is how long the publisher waits after the first failure; it doubles up to recheck.
const backoff = 500 * time.Millisecond

// Publisher keeps documents published in all its places.
type Publisher struct {
	places    []Place
	issue     func(ctx context.Context) (Issue, error)
	clock     clock.Clock
	log       *slog.Logger
	published atomic.Bool
	now       chan struct{}
	// last are the documents that stand in all places, by which the changes of others are recognized.
	last       discovery.Documents
	lastChange time.Time
}

// NewPublisher returns a publisher of what issue returns.
func NewPublisher(places []Place, issue func(ctx context.Context) (Issue, error), clock clock.Clock, log *slog.Logger) *Publisher {
	return &Publisher{places: places, issue: issue, clock: clock, log: log, now: make(chan struct{}, 1)}
}

// Nudge makes Run publish at once: there is something new.
func (p *Publisher) Nudge() {
	select {
	case p.now <- struct{}{}:
	default:
	}
}

// Run publishes until ctx is done: at once, whenever it is nudged, again soon after a failure, and every minute.
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
		case <-p.now:
		case <-p.clock.After(next):
		}
	}
}

func (p *Publisher) publish(ctx context.Context) error {
	issue, err := p.issue(ctx)
	if err != nil {
		return fmt.Errorf("make documents: %w", err)
	}
	var failed error
	for _, place := range p.places {
		changed, err := place.Publish(ctx, issue)
		switch {
		case err != nil:
			// A failure in other places is not a reason to keep a revoked key in this one, or the other way around.
			failed = errors.Join(failed, fmt.Errorf("publish in %s: %w", place, err))
		case !changed:
		case p.last.Equal(issue.Documents) && p.lastChange.Equal(issue.NextChange):
			p.log.WarnContext(ctx, "documents had been changed by another writer, and were published again", "place", place.String())
		default:
			p.log.InfoContext(ctx, "documents published", "place", place.String(), "keys", issue.KeyIDs(), "nextChange", issue.data()[discovery.NextChangeKey])
		}
	}
	if failed != nil {
		return failed
	}
	p.last, p.lastChange = issue.Documents, issue.NextChange
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
