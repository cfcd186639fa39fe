package credential

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/credence-id/credence/internal/strictjson"
)

// maxOutput is more than any client needs, and what the client library of this module takes at most.
const maxOutput = 1 << 20

// wireCredential is an ExecCredential as clients read it.
type wireCredential struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Spec       struct{}   `json:"spec"`
	Status     wireStatus `json:"status"`
}

type wireStatus struct {
	ExpirationTimestamp   string `json:"expirationTimestamp,omitempty"`
	Token                 string `json:"token,omitempty"`
	ClientCertificateData string `json:"clientCertificateData,omitempty"`
	ClientKeyData         string `json:"clientKeyData,omitempty"`
}

// Encode returns exactly one ExecCredential in JSON, with a line feed at its end, or an error. The expiry is
// in UTC, without fractions, and never later than the credential's.
func (c Credential) Encode(apiVersion string) ([]byte, error) {
	if err := checkVersion(apiVersion); err != nil {
		return nil, fmt.Errorf("encode credential: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("encode credential: %w", err)
	}
	wire := wireCredential{Kind: kind, APIVersion: apiVersion, Status: wireStatus{
		Token: c.Token.Reveal(), ClientCertificateData: string(c.CertificatePEM), ClientKeyData: c.KeyPEM.Reveal(),
	}}
	if !c.Expires.IsZero() {
		wire.Status.ExpirationTimestamp = c.Expires.UTC().Format(time.RFC3339)
	}
	out, err := strictjson.Encode(wire)
	if err != nil {
		return nil, errors.New("encode credential: it cannot be written as JSON")
	}
	if out = append(out, '\n'); len(out) > maxOutput {
		return nil, fmt.Errorf("encode credential: it has %d bytes, which is more than clients take (%d)", len(out), maxOutput)
	}
	return out, nil
}

// check refuses what no client could present.
func (c Credential) check() error {
	switch {
	case len(c.CertificatePEM) > 0 && c.KeyPEM.IsZero():
		return errors.New("it has a certificate without its private key")
	case len(c.CertificatePEM) == 0 && !c.KeyPEM.IsZero():
		return errors.New("it has a private key without its certificate")
	case len(c.CertificatePEM) == 0 && c.Token.IsZero():
		return errors.New("it has neither a token nor a certificate")
	case !utf8.Valid(c.CertificatePEM) || !utf8.ValidString(c.KeyPEM.Reveal()):
		return errors.New("its certificate or private key is not PEM")
	case !c.Expires.IsZero() && (c.Expires.Year() < 1970 || c.Expires.Year() > 9999):
		return errors.New("its expiry is not a time that can be written")
	}
	// A header takes no others, and a bearer token (RFC 6750 section 2.1) not even all of these. A space is mostly that of
	// "Bearer ", which the client writes itself.
	for i, b := range []byte(c.Token.Reveal()) {
		if b <= ' ' || b > '~' {
			return fmt.Errorf("its token cannot be sent in a header: byte %d of %d is not a visible ASCII character", i+1, len(c.Token.Reveal()))
		}
	}
	return nil
}
