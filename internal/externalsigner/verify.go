package externalsigner

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
)

// es256Half is the size of r and of s in a signature (RFC 7518, section 3.4), in bytes.
const es256Half = 32

// verify checks the last segment of a token against the first two, which signed joins by a dot (RFC 7515, section 5.2).
// Errors are *Error.
func verify(key AnnouncedKey, signed, encodedSignature string) error {
	signature, err := decodeSegment(encodedSignature)
	if err != nil || len(signature) == 0 {
		return refuse(ReasonSignature, "the signer's signature has %d bytes, and is empty or not base64url without padding", len(encodedSignature))
	}
	digest := sha256.Sum256([]byte(signed))
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		if len(signature) != public.Size() {
			return refuse(ReasonSignature, "the signer's signature has %d bytes, one of key %.64q has %d", len(signature), key.ID, public.Size())
		}
		if rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil {
			return nil
		}
	case *ecdsa.PublicKey:
		if len(signature) != 2*es256Half {
			return refuse(ReasonSignature, "the signer's signature has %d bytes, one of key %.64q has %d (r and s, without ASN.1)", len(signature), key.ID, 2*es256Half)
		}
		r, s := new(big.Int).SetBytes(signature[:es256Half]), new(big.Int).SetBytes(signature[es256Half:])
		if ecdsa.Verify(public, digest[:], r, s) {
			return nil
		}
	}
	return refuse(ReasonWrongSignature, "the signer's signature is not one of these claims by key %.64q, as it announced that key", key.ID)
}
