//go:build cgo

package pkcs11

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/ThalesGroup/crypto11"

	"github.com/credence-id/credence/execcredential"
)

// Token is a key pair in a PKCS#11 token, and the certificate beside it. It implements execcredential.Provider. It is not safe for
// concurrent use, which a pool takes care of; the keys that it hands out are.
type Token struct {
	Driver string // file, such as /usr/lib/softhsm/libsofthsm2.so
	Name   string // label of the token
	PIN    string
	Label  string // of the key pair and of the certificate

	opened *crypto11.Context
}

// Credential opens the token, and returns its certificate with a key that signs there. It is called when a credential is needed: at
// first, when the certificate has expired, and after the key did not sign. So it opens the token anew each time: a session that was
// lost, or a token that was taken away and put back, leaves nothing behind that could be used.
func (t *Token) Credential(context.Context) (*execcredential.Credential, error) {
	key, err := t.open()
	if err != nil {
		return nil, err
	}
	certificate, err := t.opened.FindCertificate(nil, []byte(t.Label), nil)
	if err != nil || certificate == nil {
		return nil, errors.Join(fmt.Errorf("token %q has no certificate %q", t.Name, t.Label), err)
	}
	return execcredential.NewCredential(execcredential.Material{
		Certificate: &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key},
		Expires:     certificate.NotAfter,
	}, time.Now())
}

// Request is a request for a certificate, in PEM, that the key in the token has signed.
func (t *Token) Request(user string, groups ...string) ([]byte, error) {
	key, err := t.open()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, key)
	if err != nil {
		return nil, fmt.Errorf("sign a request in token %q: %w", t.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Keep puts a certificate, in PEM, beside its key.
func (t *Token) Keep(certificate []byte) error {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return errors.New("the certificate is not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if _, err := t.open(); err != nil {
		return err
	}
	if err := t.opened.ImportCertificateWithLabel([]byte(t.Label), []byte(t.Label), parsed); err != nil {
		return fmt.Errorf("put a certificate into token %q: %w", t.Name, err)
	}
	return nil
}

// Close ends the sessions with the token. What Credential returned no longer signs.
func (t *Token) Close() error {
	if t.opened == nil {
		return nil
	}
	opened := t.opened
	t.opened = nil
	return opened.Close()
}

// open finds the key in the token, by new sessions.
func (t *Token) open() (crypto11.Signer, error) {
	if err := t.Close(); err != nil {
		return nil, fmt.Errorf("close token %q: %w", t.Name, err)
	}
	opened, err := crypto11.Configure(&crypto11.Config{Path: t.Driver, TokenLabel: t.Name, Pin: t.PIN, PoolWaitTimeout: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("open token %q: %w", t.Name, err)
	}
	t.opened = opened
	key, err := opened.FindKeyPair(nil, []byte(t.Label))
	if err != nil {
		return nil, fmt.Errorf("find key %q in token %q: %w", t.Label, t.Name, err)
	}
	return key, nil
}
