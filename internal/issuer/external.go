package issuer

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// External signs claims with a key of its own choice, and answers for what it returns: that the key is published and long
// enough so, and that the signature verifies. Errors that pass by themselves wrap ErrNoSigningKey.
type External interface {
	// MaxLifetime is the longest lifetime of a token that can be signed now.
	MaxLifetime() (time.Duration, error)
	// SignClaims returns the token of claims (a JSON object), signed with one of the accepted algorithms.
	SignClaims(ctx context.Context, claims []byte, accepted []identity.Algorithm) (Signed, error)
}

// Signed is a token, and by what it was signed.
type Signed struct {
	Token     identity.Token
	KeyID     identity.KeyID
	Algorithm identity.Algorithm
}

// signExternally has claims signed that were checked here.
func (i *Issuer) signExternally(ctx context.Context, prepared *Prepared) (Signed, error) {
	longest, err := i.config.External.MaxLifetime()
	if err != nil {
		return Signed{}, err
	}
	if prepared.Lifetime() > longest {
		return Signed{}, fmt.Errorf("%w: the external signer signs tokens of %s only, prepare the claims again", ErrNoSigningKey, longest)
	}
	if !prepared.redeemed.CompareAndSwap(false, true) {
		return Signed{}, errRedeemed
	}
	return i.config.External.SignClaims(ctx, prepared.payload, prepared.accepted)
}
