package clientcertificate

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

var (
	// errEarly: the certificate is as requested, but not valid yet.
	errEarly = errors.New("the certificate is not valid yet")
	// errLate: the certificate was issued, but is over.
	errLate = errors.New("the certificate is no longer valid")
)

// credential returns the issued certificate if it is as requested: errEarly, errLate, or an error that describes the
// difference.
func (p *pending) credential(s Settings, chain []byte) (credential.Credential, error) {
	none := credential.Credential{}
	leaf, clean, err := parseChain(chain)
	if err != nil {
		return none, err
	}
	if err := p.check(s, leaf); err != nil {
		return none, err
	}
	now := s.Now()
	if now.Before(leaf.NotBefore) {
		return none, fmt.Errorf("%w, but from %s on, and now is %s: is the clock right?", errEarly, clock(leaf.NotBefore), clock(now))
	}
	if !now.Before(leaf.NotAfter) {
		return none, fmt.Errorf("%w since %s, and now is %s: is the clock right?", errLate, clock(leaf.NotAfter), clock(now))
	}
	key, err := p.keyPEM()
	if err != nil {
		return none, err
	}
	return credential.Credential{CertificatePEM: clean, KeyPEM: key, Expires: leaf.NotAfter}, nil
}

// parseChain returns the first certificate of a chain in PEM, and the chain without anything else that stands there.
func parseChain(chain []byte) (*x509.Certificate, []byte, error) {
	var leaf *x509.Certificate
	var clean bytes.Buffer
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, nil, fmt.Errorf("the signer gave a %q where a certificate was expected", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("read what the signer gave: %w", err)
		}
		if leaf == nil {
			leaf = certificate
		}
		if err := pem.Encode(&clean, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, nil, fmt.Errorf("write what the signer gave: %w", err)
		}
	}
	if leaf == nil {
		return nil, nil, errors.New("the signer gave no certificate in PEM")
	}
	return leaf, clean.Bytes(), nil
}

// check compares a certificate with the request, except for its dates.
func (p *pending) check(s Settings, leaf *x509.Certificate) error {
	switch {
	case !p.key.PublicKey.Equal(leaf.PublicKey):
		return errors.New("the signer gave a certificate for another key")
	case leaf.IsCA:
		return errors.New("the signer gave the certificate of an authority")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return errors.New("the signer gave a certificate without the usage client auth")
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("the signer gave a certificate that may not sign, as a client must")
	}
	var groups []string
	names := 0
	for _, name := range leaf.Subject.Names {
		value, _ := name.Value.(string)
		switch {
		case name.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}) && value == s.User:
			names++
		case name.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 10}):
			groups = append(groups, value)
		default:
			names = -1 << 10 // never requested
		}
	}
	if names != 1 || !slices.Equal(sorted(groups), s.Groups) {
		return fmt.Errorf("the signer issued a certificate for %q, but the request was for user %q with groups %q", leaf.Subject, s.User, s.Groups)
	}
	return nil
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
