package clientcertificate

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/internal/credential"
)

// wait waits for a moment, with a notice. The error reports that the time is over.
func (t *turn) wait(ctx context.Context, approved bool) error {
	now := t.settings.Now()
	t.notify(approved)
	if !now.Before(t.until) {
		if approved {
			return fmt.Errorf("the request %s is approved, but signer %s has not signed it: is it running? Try again later", t.name, t.settings.Signer)
		}
		return fmt.Errorf("%w: the request %s is not approved yet: an approver runs %s. Then try again", credential.ErrNeedsPerson, t.name, t.approve())
	}
	if err := t.settings.Pause(ctx, min(pollEvery, t.until.Sub(now))); err != nil {
		return fmt.Errorf("wait for the request %s: %w", t.name, err)
	}
	return nil
}

// notify shows at once what is to be done, and from time to time that it is not done.
func (t *turn) notify(approved bool) {
	now := t.settings.Now()
	switch {
	case approved && !t.approved:
		t.approved = true
		t.terminal.Notice("The request %s is approved. Waiting for signer %s.", t.name, t.settings.Signer)
	case t.noticed.IsZero() && !approved:
		t.terminal.Notice("The request %s for a client certificate of user %q waits for approval. An approver runs: %s", t.name, t.settings.User, t.approve())
	case now.Before(t.noticed.Add(tellEvery)) || !now.Before(t.until):
		return
	case approved:
		t.terminal.Notice("Still waiting for signer %s, for %s at most.", t.settings.Signer, t.until.Sub(now))
	default:
		t.terminal.Notice("Still waiting for: %s, for %s at most.", t.approve(), t.until.Sub(now))
	}
	t.noticed = now
}

// approve is the command that an approver runs after checking the request.
func (t *turn) approve() string { return "kubectl certificate approve " + t.name }
