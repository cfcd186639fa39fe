package execcredential

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
)

// SignError reports that the key of a client certificate did not sign a handshake, so that nothing was sent: its device was taken away,
// the session with it is over, or it lacks the algorithm. A Transport returns it when the provider has no other credential, or one that
// does not sign either; a caller of GetClientCertificate gets what crypto/tls makes of it, which with TLS 1.3 is its text alone.
type SignError struct {
	Err error // what the crypto.Signer returned
}

func (e *SignError) Error() string {
	return fmt.Sprintf("exec credential: the key of the client certificate did not sign, and nothing was sent: %v; is its device there, and open?", e.Err)
}

func (e *SignError) Unwrap() error { return e.Err }

// inDevice reports whether the key of a certificate is somewhere else than in this process's memory, and so may stop working.
func inDevice(certificate *tls.Certificate) bool {
	if certificate == nil {
		return false
	}
	switch certificate.PrivateKey.(type) {
	case *ecdsa.PrivateKey, *rsa.PrivateKey, ed25519.PrivateKey:
		return false
	}
	_, ok := certificate.PrivateKey.(crypto.Signer)
	return ok
}

// watched is a copy of a certificate whose key reports the result of every signature, nil for success;
// certificate itself if its key is in memory.
func watched(certificate *tls.Certificate, report func(error)) *tls.Certificate {
	if !inDevice(certificate) {
		return certificate
	}
	copied := *certificate
	copied.PrivateKey = &watchedKey{certificate.PrivateKey.(crypto.Signer), report}
	return &copied
}

type watchedKey struct {
	crypto.Signer
	report func(error)
}

// Sign implements crypto.Signer.
func (k *watchedKey) Sign(random io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	return k.reported(k.Signer.Sign(random, digest, o))
}

// SignMessage implements crypto.MessageSigner, for keys that hash themselves.
func (k *watchedKey) SignMessage(random io.Reader, message []byte, o crypto.SignerOpts) ([]byte, error) {
	return k.reported(crypto.SignMessage(k.Signer, random, message, o))
}

func (k *watchedKey) reported(signature []byte, err error) ([]byte, error) {
	k.report(err)
	return signature, err
}
