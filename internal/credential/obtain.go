package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// obtain calls the source, under the lock, and stores the result before returning it.
func (t *turn) obtain(ctx context.Context) (Credential, error) {
	if t.renew {
		if err := t.lock.Reserve(); err != nil {
			return Credential{}, fmt.Errorf("%w: %w", ErrNotKept, err)
		}
	}
	refused := !t.renew && decide(t.situation()) == replace
	request := Request{ExecInfo: t.info, Previous: t.previous(), Refused: refused, Terminal: t.Terminal, Keep: t.keep}
	credential, state, err := t.source.Obtain(ctx, request)
	now := t.Now()
	if err == nil {
		if err = checkNew(credential, now); err != nil && state == nil {
			// The source has no state any more.
			state = json.RawMessage("null")
		}
	} else if state == nil {
		state = t.state()
	}
	if err != nil {
		return t.fail(ctx, err, state, refused)
	}
	t.lock.Unmark()
	old := t.state()
	next := &Entry{Key: t.key, Credential: credential, State: normalState(state), Obtained: now}
	if refused {
		next.Refusals = t.entry.refusedBy(t.info.cluster(), now)
	}
	t.entry = next
	if err := t.save(old); err != nil && t.renew {
		return Credential{}, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return t.hand(), nil
}

// previous is the stored entry as the source gets it. A state may be usable only once: if there is no space to write the
// next one, it is withheld.
func (t *turn) previous() *Entry {
	if t.entry == nil {
		return nil
	}
	previous := *t.entry
	if previous.State != nil {
		if err := t.lock.Reserve(); err != nil {
			t.Terminal.Notice("the last log-in is not used, since no new one could be kept: %v", err)
			previous.State, t.withheld = nil, true
		}
	}
	return &previous
}

// keep is Request.Keep.
func (t *turn) keep(state json.RawMessage) error {
	old := t.state()
	t.entry = t.with(state)
	return t.save(old)
}

// with is the stored entry with another state.
func (t *turn) with(state json.RawMessage) *Entry {
	next := Entry{Key: t.key}
	if t.entry != nil {
		next = *t.entry
	}
	next.State = normalState(state)
	return &next
}

// save writes what is to be kept. If that fails, a state that has been replaced is removed: it must not be used again.
func (t *turn) save(old json.RawMessage) error {
	err := t.write()
	if err == nil {
		return nil
	}
	t.Terminal.Notice("nothing could be kept: %v", err)
	if old != nil && !t.withheld && !bytes.Equal(old, t.entry.State) {
		if forgotten := t.lock.Forget(); forgotten != nil {
			t.Terminal.Notice("the credential kept before is of no use any more, and could not be removed: %v", forgotten)
		}
	}
	return err
}

// fail records that the source failed, with the remaining state. A canceled request is not recorded.
func (t *turn) fail(ctx context.Context, err error, state json.RawMessage, refused bool) (Credential, error) {
	old := t.state()
	t.entry = t.with(state)
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.entry.Failure = failed(t.entry.Failure, err, t.info, t.caller, t.Now())
	}
	_ = t.save(old)
	return t.despite(err, refused)
}

// despite returns the credential that is kept, if it can be of use in spite of an error. One that the server seems to refuse
// is served in an outage only: then nothing better is to be had, and it seems so only.
func (t *turn) despite(err error, refused bool) (Credential, error) {
	if !t.entry.valid(t.Now()) || t.renew || refused && errors.Is(err, ErrRefused) {
		return Credential{}, err
	}
	t.Terminal.Notice("%s: served is the credential that is kept, which expires at %s", Plain(err.Error(), maxMessage), clock(t.entry.Credential.Expires))
	return t.hand(), nil
}

func (t *turn) state() json.RawMessage {
	if t.entry == nil {
		return nil
	}
	return t.entry.State
}

// withoutFolder serves where nothing can be kept, unless that is what was wanted.
func (t *turn) withoutFolder(ctx context.Context, why error) (Credential, error) {
	if t.renew {
		return Credential{}, fmt.Errorf("%w: %w", ErrNotKept, why)
	}
	return t.unkept(ctx)
}

// unkept calls the source where nothing can be stored.
func (t *turn) unkept(ctx context.Context) (Credential, error) {
	request := Request{ExecInfo: t.info, Terminal: t.Terminal, Keep: func(json.RawMessage) error {
		return errors.New("nothing is kept")
	}}
	credential, _, err := t.source.Obtain(ctx, request)
	if err != nil {
		return Credential{}, err
	}
	now := t.Now()
	if err := checkNew(credential, now); err != nil {
		return Credential{}, err
	}
	return t.withEarlyExpiry(&Entry{Credential: credential, Obtained: now}), nil
}

// checkNew refuses a credential that a client could not use.
func checkNew(credential Credential, now time.Time) error {
	if err := credential.check(); err != nil {
		return fmt.Errorf("the new credential cannot be presented: %w", err)
	}
	if !credential.Expires.IsZero() && !now.Before(credential.Expires) {
		return fmt.Errorf("the new credential expired at %s already, and now is %s: is the clock right?",
			credential.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}
