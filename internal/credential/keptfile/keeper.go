package keptfile

import (
	"context"
	"errors"
	"time"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/delivery/renewal"
)

const (
	// lookEvery bounds each pause, so that a clock that was set and a machine that slept are noticed.
	lookEvery = 15 * time.Second
	// clockTolerance is how far an ordinary clock correction sets a clock back.
	clockTolerance = 10 * time.Second
	// The part of its life after which a credential is replaced, as the agent does it with tokens in Secrets.
	renewFrom, renewTo = 0.6, 0.8
	// unknownLife stands for the life of a credential whose expiry is unknown.
	unknownLife = 15 * time.Minute
)

// ErrUnchanged: the credential is still the one in the file. The reason was a notice.
var ErrUnchanged = errors.New("there is no newer credential yet")

// Keeper keeps one file. All fields are required, but for Lead.
type Keeper struct {
	// Path is the file. Its folder must exist.
	Path string
	// Get returns a credential. One that was got before newerThan is replaced if possible.
	Get func(ctx context.Context, newerThan time.Time) (credential.Credential, error)
	// Final reports whether an error of Get ends Run while there is no credential yet.
	Final func(error) bool
	// Lead is how long before its expiry the credential is replaced, at most half of its life. 0: a fifth to two fifths of its life,
	// drawn by Random.
	Lead time.Duration
	// Now is the clock, Random is uniform in [0, 1), and Pause waits.
	Now    func() time.Time
	Random func() float64
	Pause  func(context.Context, time.Duration) error
	// Notice shows a line of text.
	Notice func(format string, args ...any)
	// Ready is called whenever the file was found or made current.
	Ready func()
}

// state is what is known of the file.
type state struct {
	// have is the credential that was written last; nil before the first.
	have *credential.Credential
	// due is when have is replaced. The next attempt is not before next either, because of so many failures in a row.
	due, next time.Time
	failures  int
	// newerThan is for Get; zero where no replacement has begun.
	newerThan time.Time
	// looked is the clock at the last look.
	looked time.Time
}

// Run keeps the file until ctx ends, and returns nil then. Else it returns an error that no repetition would mend.
func (k *Keeper) Run(ctx context.Context) error {
	lock, err := take(k.Path)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	var s state
	for ctx.Err() == nil {
		now := k.Now()
		if s.looked.After(now.Add(clockTolerance)) {
			// The clock was set back: by how much all of these are wrong is not known.
			s.due, s.next, s.newerThan = now, now, time.Time{}
		}
		s.looked = now
		at := s.due
		if s.next.After(at) {
			at = s.next
		}
		if now.Before(at) {
			_ = k.Pause(ctx, min(at.Sub(now), lookEvery))
			continue
		}
		if err := k.renew(ctx, &s); err != nil && ctx.Err() == nil {
			if s.have == nil && k.Final(err) {
				return err
			}
			k.failed(&s, err)
		}
	}
	return nil
}

// renew gets a credential and writes it. The first one may be due at once.
func (k *Keeper) renew(ctx context.Context, s *state) error {
	if s.have != nil && s.newerThan.IsZero() {
		s.newerThan = k.Now()
	}
	got, err := k.Get(ctx, s.newerThan)
	if err != nil {
		return err
	}
	if s.have != nil && got.Token.Equal(s.have.Token) && got.KeyPEM.Equal(s.have.KeyPEM) {
		s.newerThan = time.Time{}
		return ErrUnchanged
	}
	if _, err := atomicfile.Update(k.Path, content(got), 0o600); err != nil {
		return err
	}
	now := k.Now()
	*s = state{have: &got, due: k.due(got, now), looked: now}
	k.Notice("%s is written, %s; the next one is requested at %s", k.Path, validity(got, now), instant(s.due))
	k.Ready()
	return nil
}

// failed plans the next attempt.
func (k *Keeper) failed(s *state, err error) {
	now := k.Now()
	s.failures++
	s.next = now.Add(renewal.Backoff(s.failures, k.Random))
	if s.have == nil {
		k.Notice("%s has no credential yet: %v; the next attempt is at %s", k.Path, err, instant(s.next))
		return
	}
	k.Notice("%s has the last credential still, %s: %v; the next attempt is at %s", k.Path, validity(*s.have, now), err, instant(s.next))
}

// due returns when a credential is replaced.
func (k *Keeper) due(got credential.Credential, now time.Time) time.Time {
	left, life := unknownLife, unknownLife
	if !got.Expires.IsZero() {
		left = got.Expires.Sub(now)
		life = left
		if claims, _ := credential.Unverified(got.Token); !claims.IssuedAt.IsZero() {
			life = got.Expires.Sub(claims.IssuedAt)
			// More is left only by a clock that is behind that of the issuer.
			left = min(left, life)
		}
	}
	lead := min(k.Lead, life/2)
	if lead <= 0 {
		lead = life - time.Duration(float64(life)*(renewFrom+(renewTo-renewFrom)*k.Random()))
	}
	return now.Add(max(0, left-lead))
}

func validity(c credential.Credential, now time.Time) string {
	switch {
	case c.Expires.IsZero():
		return "valid for an unknown time"
	case now.Before(c.Expires):
		return "valid until " + instant(c.Expires)
	}
	return "which expired at " + instant(c.Expires)
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
