package keys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/credence-id/credence/internal/identity"
)

// Validate returns nil if the ring can sign and publish: for each algorithm exactly one active key (or zero after a
// revocation) and at least one spare, not more keys than may be published, no key twice, no revoked or removed key, and
// every key as described. The error names the field, as ring.json has it.
func (r Ring) Validate() error {
	seen := map[identity.KeyID]int{}
	for i, key := range r.Keys {
		if err := key.validate(fmt.Sprintf("keys[%d]", i)); err != nil {
			return err
		}
		if first, twice := seen[key.ID]; twice {
			return fmt.Errorf("keys[%d].kid: %s is also keys[%d]: a key may be in the ring once", i, key.ID, first)
		}
		seen[key.ID] = i
	}
	for _, algorithm := range Algorithms() {
		if err := r.validateCounts(algorithm); err != nil {
			return err
		}
	}
	if err := cmp.Or(r.validateCompromised(), r.validateRequests()); err != nil {
		return err
	}
	if r.Revision < 0 {
		return fmt.Errorf("revision: %d must not be negative", r.Revision)
	}
	if r.Resumed != nil {
		if err := r.Resumed.Cause.validate(); err != nil {
			return fmt.Errorf("resumed.%w", err)
		}
		if r.Resumed.At.IsZero() {
			return errors.New("resumed.at: missing")
		}
	}
	return r.validateHistory()
}

func (r Ring) validateCounts(algorithm identity.Algorithm) error {
	revoked := slices.ContainsFunc(r.Compromised, func(c Compromised) bool { return c.Algorithm == algorithm && !c.ActivatedAt.IsZero() })
	if n := r.count(algorithm, Active); n > 1 || n == 0 && !revoked {
		return fmt.Errorf("keys: %d keys with algorithm %s and state %s, exactly 1 is needed", n, algorithm, Active)
	}
	if r.count(algorithm, Spare) == 0 {
		return fmt.Errorf("keys: no key with algorithm %s and state %s, at least 1 is needed", algorithm, Spare)
	}
	if n := r.count(algorithm); n > MaxPerAlgorithm {
		return fmt.Errorf("keys: %d keys with algorithm %s, at most %d are published", n, algorithm, MaxPerAlgorithm)
	}
	return nil
}

func (k Key) validate(path string) error {
	if k.Private == nil {
		return fmt.Errorf("%s: %s has no private key", path, k.ID)
	}
	public, err := identity.NewPublicKey(k.Private.Public())
	switch {
	case err != nil:
		return fmt.Errorf("%s: private key of %s: %w", path, k.ID, err)
	case k.ID != public.ID:
		return fmt.Errorf("%s.kid: %s does not belong to its private key, whose kid is %s", path, k.ID, public.ID)
	case k.Algorithm != public.Algorithm:
		return fmt.Errorf("%s.algorithm: %q, but the private key of %s is for %s", path, k.Algorithm, k.ID, public.Algorithm)
	case !slices.Contains(states(), k.State):
		return fmt.Errorf("%s.state: %q is unknown, it must be one of %q", path, k.State, states())
	}
	if err := k.validateTimes(path); err != nil {
		return err
	}
	return k.Terms.validate(path)
}

// validateTimes checks that a key has the times of its state, and in order.
func (k Key) validateTimes(path string) error {
	switch {
	case k.State != Spare && k.PublishedAt.IsZero():
		return fmt.Errorf("%s.publishedAt: missing", path)
	case k.State == Spare && !k.ActivatedAt.IsZero():
		return fmt.Errorf("%s.activatedAt: set on a key whose state is %s", path, k.State)
	case k.State != Spare && k.ActivatedAt.IsZero():
		return fmt.Errorf("%s.activatedAt: missing on a key whose state is %s", path, k.State)
	case k.State != Spare && k.ActivatedAt.Before(k.PublishedAt):
		return fmt.Errorf("%s.activatedAt: before publishedAt: a key is never used before it is published", path)
	case k.State != Retiring && !k.RetiredAt.IsZero():
		return fmt.Errorf("%s.retiredAt: set on a key whose state is %s", path, k.State)
	case k.State == Retiring && k.RetiredAt.IsZero():
		return fmt.Errorf("%s.retiredAt: missing on a key whose state is %s", path, k.State)
	case k.State == Retiring && k.RetiredAt.Before(k.ActivatedAt):
		return fmt.Errorf("%s.retiredAt: before activatedAt", path)
	case k.State == Active && !k.LastExpiry.IsZero():
		return fmt.Errorf("%s.lastExpiry: set on a key whose state is %s", path, k.State)
	case !k.LastExpiry.IsZero() && k.LastExpiry.Before(k.RetiredAt):
		return fmt.Errorf("%s.lastExpiry: before retiredAt: a key must be kept until what it signed has expired", path)
	case k.State == Spare && k.Terms != Terms{}:
		return fmt.Errorf("%s.maxLifetimeSeconds: a key whose state is %s has signed nothing", path, k.State)
	}
	return nil
}

func (t Terms) validate(path string) error {
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"maxLifetimeSeconds", t.MaxLifetime}, {"stalenessSeconds", t.Staleness}} {
		if field.value < 0 || field.value > longestSetting || field.value%time.Second != 0 {
			return fmt.Errorf("%s.%s: %s must be whole seconds, not negative, and at most %s", path, field.name, field.value, longestSetting)
		}
	}
	return nil
}

func (r Ring) validateCompromised() error {
	if len(r.Compromised) > maxCompromised {
		return fmt.Errorf("compromised: %d entries, at most %d are kept", len(r.Compromised), maxCompromised)
	}
	seen := map[identity.KeyID]int{}
	for i, gone := range r.Compromised {
		if err := gone.validate(); err != nil {
			return fmt.Errorf("compromised[%d].%w", i, err)
		}
		if first, twice := seen[gone.ID]; twice {
			return fmt.Errorf("compromised[%d].kid: %s is also compromised[%d]", i, gone.ID, first)
		}
		if r.index(gone.ID) >= 0 {
			return fmt.Errorf("compromised[%d].kid: %s was revoked, but is keys[%d]: a key that was revoked is never used again", i, gone.ID, r.index(gone.ID))
		}
		seen[gone.ID] = i
	}
	return nil
}

// validate names the field that is wrong.
func (c Compromised) validate() error {
	switch {
	case !WellFormed(c.ID):
		return fmt.Errorf("kid: %.64q is not the base64url of a SHA-256 sum", c.ID)
	case !slices.Contains(Algorithms(), c.Algorithm):
		return fmt.Errorf("algorithm: %.64q is unknown, it must be one of %q", c.Algorithm, Algorithms())
	case c.RevokedAt.IsZero():
		return errors.New("revokedAt: missing")
	}
	return c.Cause.validate()
}

func (r Ring) validateRequests() error {
	seen := map[identity.Algorithm]int{}
	for i, request := range r.Requests {
		path := fmt.Sprintf("requests[%d]", i)
		first, twice := seen[request.Algorithm]
		switch {
		case !slices.Contains(Algorithms(), request.Algorithm):
			return fmt.Errorf("%s.algorithm: %.64q is unknown, it must be one of %q", path, request.Algorithm, Algorithms())
		case twice:
			return fmt.Errorf("%s.algorithm: %s is also that of requests[%d]", path, request.Algorithm, first)
		case request.At.IsZero():
			return fmt.Errorf("%s.at: missing", path)
		}
		if err := request.Cause.validate(); err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
		seen[request.Algorithm] = i
	}
	return nil
}

func (r Ring) validateHistory() error {
	if len(r.History) > MaxHistory {
		return fmt.Errorf("history: %d entries, at most %d are kept", len(r.History), MaxHistory)
	}
	gone := map[identity.KeyID]bool{}
	for i, event := range r.History {
		if err := event.validate(); err != nil {
			return fmt.Errorf("history[%d].%w", i, err)
		}
		gone[event.Key] = gone[event.Key] || event.Kind == Removed || event.Kind == Revoked
	}
	for i, key := range r.Keys {
		if gone[key.ID] {
			return fmt.Errorf("keys[%d].kid: %s has left the ring by its history, and no key is used again", i, key.ID)
		}
	}
	return nil
}

// validate names the field that is wrong.
func (e Event) validate() error {
	switch {
	case e.At.IsZero():
		return errors.New("at: missing")
	case !slices.Contains(eventKinds(), e.Kind):
		return fmt.Errorf("kind: %.64q is unknown, it must be one of %q", e.Kind, eventKinds())
	case !slices.Contains(Algorithms(), e.Algorithm):
		return fmt.Errorf("algorithm: %.64q is unknown, it must be one of %q", e.Algorithm, Algorithms())
	case !WellFormed(e.Key):
		return fmt.Errorf("kid: %.64q is not the base64url of a SHA-256 sum", e.Key)
	}
	return e.Cause.validate()
}

// validate names the field that is wrong.
func (c Cause) validate() error {
	switch {
	case c.By == "":
		return errors.New("by: missing")
	case !printable(c.By, maxBy):
		return fmt.Errorf("by: must be at most %d bytes of printable text", maxBy)
	case !printable(c.Reason, maxReason):
		return fmt.Errorf("reason: must be at most %d bytes of printable text", maxReason)
	}
	return nil
}

// printable reports whether a text can be shown on one line of a terminal as it is.
func printable(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, func(char rune) bool { return !unicode.IsPrint(char) })
}
