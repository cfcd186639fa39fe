package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/internal/certificates"
)

const (
	// rounds bounds how often a plan is carried out and decided again: two or three are enough unless others write, too.
	rounds = 20
	// settle joins changes that come together, and bounds what it costs if another program writes again and again what this one does.
	settle = time.Second
	// lookEvery is how often everything is looked at without a change.
	lookEvery = 5 * time.Minute
	// A failure is tried again after firstPause, and then after twice as long each time.
	firstPause, longestPause = time.Second, time.Minute
)

// Needs are what a Keeper works with.
type Needs struct {
	Namespace string // of the Secrets
	Secrets   corev1client.SecretInterface
	Objects   dynamic.Interface
	Metadata  metadata.Interface // to learn of changes
	Events    record.EventRecorder
	Wanted    []certificates.Wanted
	Settings  certificates.Settings
	Now       func() time.Time
	Random    io.Reader
	Recorder  *Recorder
	Log       *slog.Logger
}

// Keeper keeps the certificates of a cluster. Of several, those that do not lead only look.
type Keeper struct {
	Needs

	leads   atomic.Bool
	changed chan struct{}
	open    atomic.Pointer[state]
	own     own
}

// state is what is not as it should be; nil: nothing.
type state struct{ err error }

// New returns a Keeper. It shows a certificate of its own from the start.
func New(needs Needs) (*Keeper, error) {
	k := &Keeper{Needs: needs, changed: make(chan struct{}, 1)}
	k.open.Store(&state{errors.New("nothing has been looked at yet")})
	return k, k.own.begin(needs)
}

// Ready returns what is not as it should be, or nil.
func (k *Keeper) Ready() error { return k.open.Load().err }

// Lead has the Keeper write what is missing until ctx is done.
func (k *Keeper) Lead(ctx context.Context) error {
	k.leads.Store(true)
	k.nudge()
	<-ctx.Done()
	k.leads.Store(false)
	return nil
}

// nudge has everything looked at soon.
func (k *Keeper) nudge() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run looks at every change, and when the last look found that something will be due, until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	watches := k.follow(ctx)
	defer watches.Wait()
	pause := firstPause
	for {
		next, err := k.pass(ctx)
		if ctx.Err() != nil {
			return nil
		}
		k.Recorder.failed(err)
		wait, changed := min(next.Sub(k.Now()), lookEvery), k.changed
		if err != nil {
			k.open.Store(&state{err})
			k.Log.ErrorContext(ctx, "certificates are not kept", "error", err, "again", pause)
			wait, changed, pause = pause, nil, min(2*pause, longestPause)
		} else {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, settle)):
		case <-changed:
			select {
			case <-ctx.Done():
			case <-time.After(settle):
			}
		}
	}
}

// pass looks, and does what must be done while it leads. It returns when to look again.
func (k *Keeper) pass(ctx context.Context) (time.Time, error) {
	for range rounds {
		s, err := k.look(ctx)
		if err != nil {
			return time.Time{}, err
		}
		k.Recorder.found(s.Found, k.Wanted)
		k.own.take(s.Certificates[certificates.Own])
		plan := certificates.Decide(s.Found, k.Wanted, k.Settings, k.Now())
		if plan.Empty() {
			k.open.Store(&state{})
			return plan.Next, nil
		}
		if !k.leads.Load() {
			k.open.Store(&state{errors.New("the replica that leads has something to do: " + describe(plan))})
			return k.Now().Add(lookEvery), nil
		}
		if err := k.carryOut(ctx, s, plan); err != nil {
			if authority := s.secrets[certificates.AuthoritySecret]; authority != nil {
				k.event(authority, corev1.EventTypeWarning, eventFailed, err.Error())
			}
			return time.Time{}, err
		}
	}
	return time.Time{}, fmt.Errorf("what was written was changed %d times by others", rounds)
}

// describe names the first thing that a plan requires.
func describe(plan certificates.Plan) string {
	switch {
	case plan.NewAuthority != "":
		return "make an authority: " + plan.NewAuthority
	case !plan.BundleStored:
		return "store the authorities that are trusted"
	case len(plan.Objects) > 0:
		return "write caBundle of " + plan.Objects[0]
	case len(plan.Issue) > 0:
		return "make the certificate of " + plan.Issue[0].Wanted.Name + ": " + plan.Issue[0].Reason
	}
	return "write what is trusted into the Secret " + certificates.SecretOf(plan.Rebundle[0])
}
