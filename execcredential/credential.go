package execcredential

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// Credential is a token, a client certificate, or both, that belong together. It never changes, and prints as [redacted]. A nil one has
// neither.
type Credential struct {
	token         string
	authorization []string // the value of the Authorization header
	certificate   *tls.Certificate
	expires       time.Time
}

// Material is what a Credential is made of.
type Material struct {
	// Token is a bearer token, in characters that a header can carry.
	Token string
	// Certificate is a client certificate with its chain. Its PrivateKey may be any crypto.Signer: a key in a PKCS#11 token, a TPM or
	// a key management service never leaves it.
	Certificate *tls.Certificate
	// Expires is when the credential must not be used anymore. Zero means never.
	Expires time.Time
}

// Format is [redacted] for every verb.
func (m Material) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText is [redacted], for JSON too.
func (m Material) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// NewCredential checks m as output of programs is checked, at the time now, and returns an *OutputError if it can't be used. It is
// for providers that are Go code of this process.
func NewCredential(m Material, now time.Time) (*Credential, error) {
	if m.Token == "" && m.Certificate == nil {
		return nil, &OutputError{Problem: NoCredential}
	}
	if err := checkToken(m.Token); err != nil {
		return nil, err
	}
	if m.Certificate != nil {
		copied := *m.Certificate
		if err := checkCertificate(&copied, now); err != nil {
			return nil, err
		}
		m.Certificate = &copied
	}
	return newCredential(m), nil
}

func newCredential(m Material) *Credential {
	c := &Credential{token: m.Token, certificate: m.Certificate, expires: m.Expires}
	if m.Token != "" {
		c.authorization = []string{"Bearer " + m.Token}
	}
	return c
}

// Token is the bearer token, or empty.
func (c *Credential) Token() string {
	if c == nil {
		return ""
	}
	return c.token
}

// Certificate is the client certificate with its key, or nil. It must not be changed.
func (c *Credential) Certificate() *tls.Certificate {
	if c == nil {
		return nil
	}
	return c.certificate
}

// empty reports whether there is nothing that a server could take.
func (c *Credential) empty() bool { return c == nil || c.authorization == nil && c.certificate == nil }

// leaf is the certificate itself, or nil.
func (c *Credential) leaf() *x509.Certificate {
	if c.certificate == nil {
		return nil
	}
	return c.certificate.Leaf
}

// Expires is when the credential must not be used anymore. Zero means never.
func (c *Credential) Expires() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.expires
}

// Equal reports whether a server could not tell the two apart: the same token, or password, and the same certificates. Expiry doesn't count.
func (c *Credential) Equal(other *Credential) bool {
	if c == other {
		return true
	}
	return c != nil && other != nil && slices.Equal(c.authorization, other.authorization) && sameCertificate(c.certificate, other.certificate)
}

func sameCertificate(a, b *tls.Certificate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// expired reports whether c must not be used at the time now.
func (c *Credential) expired(now time.Time) bool {
	return !c.expires.IsZero() && !now.Before(c.expires)
}

// String is [redacted].
func (c *Credential) String() string { return redacted }

// Format is [redacted] for every verb.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue is [redacted].
func (c *Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses: a caller that needs the token uses the method for it.
func (c Credential) MarshalJSON() ([]byte, error) {
	return nil, errors.New("execcredential: a credential is not written as JSON; call Token or Certificate")
}
