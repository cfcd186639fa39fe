package issuer

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/credence-id/credence/internal/identity"
)

// Sign returns the token of checked claims (a JWT in compact serialization, RFC 7519). It is the only function of Credence
// that has workload-identity tokens signed. A Prepared is used up by it, unless the error is ErrNoSigningKey or that of
// ctx; a call of an external signer has used it up in any case.
func (i *Issuer) Sign(ctx context.Context, prepared *Prepared) (identity.Token, error) {
	if prepared == nil || prepared.self != prepared || prepared.issuer != i {
		return identity.Token{}, errors.New("sign token: its claims were not prepared by this issuer")
	}
	if err := ctx.Err(); err != nil {
		return identity.Token{}, fmt.Errorf("sign token: %w", err)
	}
	sign := i.signWithRing
	if i.config.External != nil {
		sign = i.signExternally
	}
	signed, err := sign(ctx, prepared)
	if err != nil {
		return identity.Token{}, err
	}
	prepared.signed.Store(&signed)
	return signed.Token, nil
}

// errRedeemed: the claims were signed before.
var errRedeemed = errors.New("sign token: these claims were signed before, prepare them again")

func (i *Issuer) signWithRing(_ context.Context, prepared *Prepared) (Signed, error) {
	// Checked again: between Prepare and Sign the key may have been revoked or retired, and the ring have grown too old.
	permit, err := i.permit(prepared.algorithm)
	if err != nil {
		return Signed{}, err
	}
	if prepared.Lifetime() > permit.longest {
		return Signed{}, fmt.Errorf("%w: the %s key that signs now allows tokens of %s only, prepare the claims again", ErrNoSigningKey, prepared.algorithm, permit.longest)
	}
	if !prepared.redeemed.CompareAndSwap(false, true) {
		return Signed{}, errRedeemed
	}
	by := permit.signer
	token, err := by.sign(i.config.Random, prepared.payload)
	if err != nil {
		return Signed{}, fmt.Errorf("sign token with key %s: %w", by.id, err)
	}
	return Signed{Token: token, KeyID: by.id, Algorithm: by.algorithm}, nil
}

// sign puts the token together in one buffer: the signed part is the start of the token.
func (s *signer) sign(random io.Reader, payload []byte) (identity.Token, error) {
	encoding := base64.RawURLEncoding
	token := make([]byte, 0, len(s.header)+encoding.EncodedLen(len(payload))+1+encoding.EncodedLen(s.signatureSize))
	token = append(token, s.header...)
	token = encoding.AppendEncode(token, payload)
	digest := sha256.Sum256(token)
	signature, err := s.private.Sign(random, digest[:], crypto.SHA256)
	if err != nil {
		return identity.Token{}, err
	}
	if s.algorithm == identity.ES256 {
		signature, err = RawSignature(signature)
		if err != nil {
			return identity.Token{}, err
		}
	}
	if len(signature) != s.signatureSize {
		return identity.Token{}, fmt.Errorf("the key gave a signature of %d bytes, %d were expected", len(signature), s.signatureSize)
	}
	token = append(token, '.')
	return identity.NewToken(string(encoding.AppendEncode(token, signature))), nil
}
