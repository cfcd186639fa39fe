package signer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// watch notes what becomes of the ring, and logs it.
type watch struct {
	log *slog.Logger

	mu   sync.Mutex
	next time.Time
	// wrong are the conditions that were logged, and hold.
	wrong map[keys.Condition]bool
}

// nextChange is when the published keys change next; zero if that is not known.
func (w *watch) nextChange() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

func (w *watch) ring(ctx context.Context, kept keyring.Kept) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = kept.Plan.NextChange
	holds := map[keys.Condition]bool{}
	for _, condition := range kept.Plan.Conditions {
		holds[condition] = true
		if !w.wrong[condition] {
			w.log.WarnContext(ctx, "the ring of keys needs attention", "condition", string(condition.Type), "algorithm", string(condition.Algorithm), "detail", condition.Message)
		}
	}
	w.wrong = holds
}

func (w *watch) events(ctx context.Context, events []keys.Event) {
	for _, event := range events {
		w.log.InfoContext(ctx, "a key has changed", "event", string(event.Kind), "kid", string(event.Key), "algorithm", string(event.Algorithm),
			"by", event.By, "reason", event.Reason, "acceptRefusals", event.AcceptRefusals)
	}
}
