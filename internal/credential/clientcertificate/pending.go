package clientcertificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/credence-id/credence/internal/credential"
)

// pending is a request, before its certificate is here.
type pending struct {
	key  *ecdsa.PrivateKey
	csr  []byte // PEM
	name string
}

// state is a pending request as it is kept.
type state struct {
	Key string `json:"key"` // PKCS #8, PEM
	CSR string `json:"csr"` // PEM
}

// forgotten is the state of a request that is of no use any more.
var forgotten = json.RawMessage("null")

// newPending makes a key and a request for it.
func newPending(s Settings) (*pending, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: s.User, Organization: s.Groups},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("make a request for a certificate: %w", err)
	}
	return named(key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// named derives the name of the request from its key: another run with the key finds the same request.
func named(key *ecdsa.PrivateKey, csr []byte) (*pending, error) {
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("name a request for a certificate: %w", err)
	}
	return &pending{key: key, csr: csr, name: fmt.Sprintf("credence-%.10x", sha256.Sum256(public))}, nil
}

// parsePending reads a stored request; nil if it is empty or invalid.
func parsePending(raw json.RawMessage) *pending {
	var kept state
	if json.Unmarshal(raw, &kept) != nil {
		return nil
	}
	block, _ := pem.Decode([]byte(kept.Key))
	if block == nil {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || !sameKey([]byte(kept.CSR), key) {
		return nil
	}
	p, err := named(key, []byte(kept.CSR))
	if err != nil {
		return nil
	}
	return p
}

// sameKey reports whether a request in PEM is for the key.
func sameKey(csr []byte, key *ecdsa.PrivateKey) bool {
	block, _ := pem.Decode(csr)
	if block == nil {
		return false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && key.PublicKey.Equal(request.PublicKey)
}

func (p *pending) keyPEM() (credential.Secret, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return credential.Secret{}, errors.New("the key cannot be encoded")
	}
	return credential.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), nil
}

func (p *pending) encode() (json.RawMessage, error) {
	key, err := p.keyPEM()
	if err != nil {
		return nil, err
	}
	return json.Marshal(state{Key: key.Reveal(), CSR: string(p.csr)})
}

func (p *pending) request(s Settings) SigningRequest {
	return SigningRequest{Name: p.name, CSR: bytes.Clone(p.csr), Signer: s.Signer, Usages: s.Usages, Duration: s.Duration}
}
