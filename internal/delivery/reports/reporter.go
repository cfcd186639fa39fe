package reports

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Sender sends a report of the identity with a uid. Its errors are those of the API.
type Sender interface {
	Report(ctx context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error
}

const (
	// workers bounds how many reports are sent at once.
	workers = 4
	// settling is how long a first report waits for what follows at once.
	settling = time.Second
	// refused is how long an identity gets no reports after one was refused.
	refused = 10 * time.Minute
)

// Reporter reports. The nil Reporter does nothing.
type Reporter struct {
	sender Sender
	clock  clock.PassiveClock
	log    *slog.Logger
	board  *board
	queue  workqueue.TypedDelayingInterface[types.NamespacedName]
	warn   sync.Once
}

// New returns a Reporter, which sends reports again after a while; 0: when something changes.
func New(sender Sender, repeat time.Duration, clock clock.PassiveClock, log *slog.Logger) *Reporter {
	return &Reporter{sender: sender, clock: clock, log: log, board: newBoard(repeat), queue: workqueue.NewTypedDelayingQueue[types.NamespacedName]()}
}

// Set takes over what is known of a Secret.
func (r *Reporter) Set(key types.NamespacedName, secret Secret) {
	if r != nil {
		r.look(r.board.set(key, secret), settling)
	}
}

// Remove is for a Secret that is gone, or requests no tokens any more.
func (r *Reporter) Remove(key types.NamespacedName) {
	if r != nil {
		r.look(r.board.remove(key), settling)
	}
}

func (r *Reporter) look(identities []types.NamespacedName, after time.Duration) {
	for _, identity := range identities {
		r.queue.AddAfter(identity, after)
	}
}

// Run sends reports until ctx is done.
func (r *Reporter) Run(ctx context.Context) {
	context.AfterFunc(ctx, r.queue.ShutDown)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				identity, done := r.queue.Get()
				if done {
					return
				}
				if after := r.send(ctx, identity); after > 0 {
					r.queue.AddAfter(identity, after)
				}
				r.queue.Done(identity)
			}
		})
	}
	group.Wait()
}

// send reports an identity if that is due, and returns after how long it is to be looked at again; 0: when something changes.
func (r *Reporter) send(ctx context.Context, identity types.NamespacedName) time.Duration {
	now := r.clock.Now()
	report, uid, wait := r.board.next(identity, now)
	if report == nil {
		return wait
	}
	err := r.sender.Report(ctx, identity, uid, *report)
	switch {
	case err == nil:
		r.board.sent(identity, uid, report, now, now.Add(every))
		return r.board.repeat
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// It is gone, or another one, which is handled elsewhere.
		r.board.sent(identity, uid, report, now, now.Add(every))
		return r.board.repeat
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		r.warn.Do(func() {
			r.log.WarnContext(ctx, "the status of identities does not show how delivery goes: give the agent's user the role credence:agent:identities of this version in the identity cluster",
				"identity", identity.String(), "error", err)
		})
		r.board.sent(identity, uid, nil, now, now.Add(refused))
		return refused
	default:
		r.board.sent(identity, uid, nil, now, now.Add(every))
		return every
	}
}
