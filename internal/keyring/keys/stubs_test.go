package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/big"

	"github.com/credence-id/credence/internal/identity"
)

// generate makes distinct keys that can be published, but never sign: real RSA keys would take most of the time.
func (w *world) generate(algorithm identity.Algorithm) (crypto.Signer, error) {
	w.made++
	seed := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, w.seed), w.made)
	if algorithm == identity.ES256 {
		sum := sha256.Sum256(seed)
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
		if err != nil {
			return nil, err
		}
		return stub{&private.PublicKey}, nil
	}
	modulus := make([]byte, 0, rsaBits/8)
	for i := byte(0); len(modulus) < rsaBits/8; i++ {
		sum := sha256.Sum256(append(seed, i))
		modulus = append(modulus, sum[:]...)
	}
	modulus[0] |= 0x80
	return stub{&rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: 65537}}, nil
}

type stub struct{ public crypto.PublicKey }

func (s stub) Public() crypto.PublicKey { return s.public }

func (s stub) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("a stub signs nothing")
}

func (s stub) Equal(other crypto.PrivateKey) bool { return s == other }
