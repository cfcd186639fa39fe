package issuer

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Config is what an Issuer needs.
type Config struct {
	// Issuer is the iss claim of every token.
	Issuer identity.Issuer
	// GardenID names the installation in every token; empty leaves it out.
	GardenID string
	// Lifetimes bound the lifetime of tokens; the zero value stands for the defaults.
	Lifetimes identity.Lifetimes
	// Ring returns the keys as they were read last, and the time before they were read, with the monotonic reading of the
	// clock; a ring that is too old to sign with is refused here. It is called for every token, from many goroutines.
	Ring func() (ring keys.Ring, readAt time.Time)
	// Unusable returns why Ring gives an empty ring, in words for any caller. nil: no reason is known.
	Unusable func() error
	// External signs instead of a ring, with keys that this process does not hold. Exactly one of the two is set.
	External External
	// Clock returns the current time.
	Clock func() time.Time
	// Random is where token IDs come from. Reads may be concurrent.
	Random io.Reader
}

// Issuer makes tokens. It is safe for concurrent use.
type Issuer struct {
	config  Config
	signers atomic.Pointer[signers]
}

// New returns an Issuer, or an error that names the setting that is missing or wrong.
func New(config Config) (*Issuer, error) {
	if _, err := identity.ParseIssuer(string(config.Issuer)); err != nil {
		return nil, err
	}
	if !identity.Printable(config.GardenID) {
		return nil, fmt.Errorf("garden ID %q has a space or a character outside printable ASCII", config.GardenID)
	}
	lifetimes, err := config.Lifetimes.Complete()
	if err != nil {
		return nil, err
	}
	config.Lifetimes = lifetimes
	switch {
	case (config.Ring == nil) == (config.External == nil):
		return nil, errors.New("an issuer needs a ring of keys, or an external signer")
	case config.Clock == nil:
		return nil, errors.New("an issuer needs a clock")
	case config.Random == nil:
		return nil, errors.New("an issuer needs a source of randomness")
	}
	issuer := &Issuer{config: config}
	issuer.signers.Store(&signers{})
	return issuer, nil
}
