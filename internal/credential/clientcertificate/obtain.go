package clientcertificate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

const (
	pollEvery = 2 * time.Second
	tellEvery = 30 * time.Second
)

// turn is one Obtain.
type turn struct {
	*Source
	api      API
	terminal credential.Terminal
	*pending
	until time.Time
	// noticed is the time of the last notice to wait; approved and lost report whether the approval, and the loss of the
	// connection to the cluster, were noticed.
	noticed        time.Time
	approved, lost bool
}

// Obtain implements credential.Source: it makes a request, or finds the pending one, and waits until it is approved and
// signed. The error is a credential.ErrNeedsPerson if it was not approved in time; the request and its key stay. It is a
// credential.ErrRefused if the cluster does not accept the request, or if it was denied, has failed or vanished, or if the
// certificate differs from the request: then the next run makes a new one. Any other error is an outage.
//
// Shortly before the end of a valid certificate it does not wait: while the request for the next one is pending, it returns the
// current one.
func (s *Source) Obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	got, state, err := s.obtain(ctx, request)
	if err != nil {
		return credential.Credential{}, state, fmt.Errorf("get a client certificate for user %q: %w", s.settings.User, err)
	}
	return got, state, nil
}

func (s *Source) obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	none := credential.Credential{}
	api, err := s.connect(s.access, request)
	if err != nil {
		return none, nil, err
	}
	now := s.settings.Now()
	t := &turn{Source: s, api: api, terminal: request.Terminal, pending: parsePending(request.State()), until: now.Add(s.Wait(request.ExecInfo.Interactive))}
	found := t.pending != nil
	if !found {
		if t.pending, err = newPending(s.settings); err != nil {
			return none, nil, err
		}
	}
	state, err := t.encode()
	if err != nil {
		return none, nil, err
	}
	if !found {
		// Stored before others can see the request, so that an interrupted run finds it again. If it cannot be stored, the
		// certificate is used all the same.
		_ = request.Keep(state)
	}
	renewsEarly := s.renewsEarly(request, now)
	if renewsEarly {
		t.until = now
	}
	got, err := t.certificate(ctx, found)
	switch {
	case err == nil:
		return got, nil, nil
	case found && errors.Is(err, errLate):
		// It was approved while this program did not run, and for longer than the certificate's lifetime.
		request.Previous = withoutState(request.Previous)
		return s.obtain(ctx, request)
	case renewsEarly && errors.Is(err, credential.ErrNeedsPerson):
		return request.Previous.Credential, state, nil
	case errors.As(err, new(*overError)):
		return none, forgotten, err
	}
	return none, state, err
}

// overError: the request has ended without a certificate, and its key is of no use.
type overError struct{ error }

func (e *overError) Unwrap() error { return e.error }

// over is a refusal after which the next time begins anew.
func over(format string, args ...any) error {
	return &overError{fmt.Errorf("%w: "+format, append([]any{credential.ErrRefused}, args...)...)}
}

func withoutState(previous *credential.Entry) *credential.Entry {
	next := *previous
	next.State = nil
	return &next
}

// renewsEarly reports whether a valid certificate is replaced only because it ends soon.
func (s *Source) renewsEarly(request credential.Request, now time.Time) bool {
	if request.Refused || request.Previous == nil || len(request.Previous.Credential.CertificatePEM) == 0 {
		return false
	}
	expires := request.Previous.Credential.Expires
	return now.Before(expires) && !now.Before(expires.Add(-s.settings.RenewBefore))
}

// certificate waits for the certificate of the request.
func (t *turn) certificate(ctx context.Context, found bool) (credential.Credential, error) {
	progress, err := t.submit(ctx, found)
	if err != nil {
		return credential.Credential{}, err
	}
	for {
		switch {
		case !sameKey(progress.CSR, t.key) || progress.Signer != t.settings.Signer:
			return credential.Credential{}, over("the request %s in the cluster is another than the one that was made here", t.name)
		case progress.Denied != nil:
			return credential.Credential{}, over("the request %s was denied (%s): ask an approver, and try again", t.name, progress.Denied)
		case progress.Failed != nil:
			return credential.Credential{}, over("signer %s could not sign the request %s (%s): correct the settings, and try again", t.settings.Signer, t.name, progress.Failed)
		case progress.Approved && len(progress.Certificate) > 0:
			return t.issued(progress.Certificate)
		}
		if err := t.wait(ctx, progress.Approved); err != nil {
			return credential.Credential{}, err
		}
		if progress, err = t.look(ctx, progress); err != nil {
			return credential.Credential{}, err
		}
	}
}

// issued returns the issued certificate if it is as requested.
func (t *turn) issued(chain []byte) (credential.Credential, error) {
	got, err := t.credential(t.settings, chain)
	switch {
	case err == nil || errors.Is(err, errEarly):
		return got, err
	case errors.Is(err, errLate):
		return got, &overError{err}
	default:
		return got, over("request %s to %s: %w", t.name, t.settings.Signer, err)
	}
}

// submit creates the request, unless it is there already.
func (t *turn) submit(ctx context.Context, found bool) (Progress, error) {
	if found {
		progress, err := t.api.Get(ctx, t.name)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return progress, doing("look at the request", t.name, err)
		}
		// It was never created, or the cluster has forgotten it, as it does after a while.
	}
	progress, err := t.api.Create(ctx, t.request(t.settings))
	if errors.Is(err, ErrExists) {
		progress, err = t.api.Get(ctx, t.name)
	}
	return progress, doing("create the request", t.name, err)
}

func doing(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

// look returns the current request, or its last known state while the cluster cannot be reached.
func (t *turn) look(ctx context.Context, before Progress) (Progress, error) {
	progress, err := t.api.Get(ctx, t.name)
	switch {
	case err == nil:
		t.lost = false
		return progress, nil
	case errors.Is(err, ErrNotFound):
		return Progress{}, over("the request %s was deleted while it waited: try again", t.name)
	case errors.Is(err, credential.ErrRefused) || ctx.Err() != nil || !t.settings.Now().Before(t.until):
		return Progress{}, doing("look at the request", t.name, err)
	}
	// Approval may take minutes: a moment without the cluster does not end the wait.
	if !t.lost {
		t.lost = true
		t.terminal.Notice("look at the request %s: %v; trying again", t.name, err)
	}
	return before, nil
}
