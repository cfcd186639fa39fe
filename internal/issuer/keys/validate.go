package keys

import (
	"fmt"
	"slices"

	"github.com/credence-id/credence/internal/identity"
)

// Validate returns nil if the ring can sign and publish: for each algorithm exactly one active key and at least one
// spare, no key twice, and every key what it says it is. The error names the field, as ring.json has it.
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
	for _, algorithm := range algorithms() {
		if n := r.count(algorithm, Active); n != 1 {
			return fmt.Errorf("keys: %d keys with algorithm %s and state %s, exactly 1 is needed", n, algorithm, Active)
		}
		if r.count(algorithm, Spare) == 0 {
			return fmt.Errorf("keys: no key with algorithm %s and state %s, at least 1 is needed", algorithm, Spare)
		}
	}
	return nil
}

func (r Ring) count(algorithm identity.Algorithm, state State) int {
	n := 0
	for _, key := range r.Keys {
		if key.Algorithm == algorithm && key.State == state {
			n++
		}
	}
	return n
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
	case k.PublishedAt.IsZero():
		return fmt.Errorf("%s.publishedAt: missing", path)
	case k.State == Spare && !k.ActivatedAt.IsZero():
		return fmt.Errorf("%s.activatedAt: set on a key whose state is %s", path, Spare)
	case k.State == Active && k.ActivatedAt.IsZero():
		return fmt.Errorf("%s.activatedAt: missing on a key whose state is %s", path, Active)
	case k.State == Active && k.ActivatedAt.Before(k.PublishedAt):
		return fmt.Errorf("%s.activatedAt: before publishedAt: a key is never used before it is published", path)
	}
	return nil
}
