package keys

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/credence-id/credence/internal/identity"
)

const pemType = "PRIVATE KEY"

// maxPrivateSize is several times the PEM of an RSA-4096 key.
const maxPrivateSize = 16 << 10

// DecodePrivate returns the private key of a PEM file: exactly one block PRIVATE KEY (PKCS #8), unencrypted, and nothing
// else. Keys that no algorithm of Credence signs with are refused (identity.AlgorithmOf). Errors show no part of the key.
func DecodePrivate(data []byte) (crypto.Signer, error) {
	if len(data) > maxPrivateSize {
		return nil, fmt.Errorf("%d bytes are too many for a private key, at most %d are read", len(data), maxPrivateSize)
	}
	if !bytes.HasPrefix(data, []byte("-----BEGIN ")) {
		return nil, errors.New("not a PEM file: it must start with -----BEGIN " + pemType + "-----")
	}
	if bytes.Count(data, []byte("-----BEGIN ")) != 1 {
		return nil, errors.New("more than one PEM block: one private key is allowed in a file")
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("PEM block is damaged or cut off")
	case block.Type != pemType:
		return nil, fmt.Errorf("PEM block is %.64q, it must be %q (PKCS #8, unencrypted): convert it with openssl pkcs8 -topk8 -nocrypt",
			block.Type, pemType)
	case len(block.Headers) != 0:
		return nil, errors.New("PEM block has headers, which are not allowed")
	case len(bytes.TrimSpace(rest)) != 0:
		return nil, errors.New("data after the PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse PKCS #8: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key type %T can not sign", parsed)
	}
	if _, err := identity.AlgorithmOf(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}
