package controller

import (
	"errors"

	"github.com/credence-id/credence/internal/keyring"
)

// readiness reports the controller ready once it has read the ring, and stays so through an outage of the store: nothing
// is gained by ending it. A damaged ring makes every replica unready.
func readiness(ring *keyring.Follower) func() error {
	return func() error {
		if _, loaded := ring.Newest(); !loaded {
			return errors.New("the ring of keys is not loaded yet")
		}
		if ring.Damage() != nil {
			return errors.New("the stored ring of keys can not be used, see the log")
		}
		return nil
	}
}
