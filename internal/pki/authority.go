package pki

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	year = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is made again: longer than any one run of up is expected to be.
	renewBefore = 30 * 24 * time.Hour
	// clockSkew is what other clocks may be behind.
	clockSkew = 5 * time.Minute
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// Request describes a certificate. It is for serving if Hosts or IPs are set, and for a client otherwise.
type Request struct {
	CommonName    string
	Organizations []string
	Hosts         []string
	IPs           []net.IP
	Lifetime      time.Duration // 0: a year
}

// Pair is a certificate and its private key, each PEM.
type Pair struct{ Certificate, Key []byte }

// Load reads an authority from its certificate and private key, each PEM. The key must belong to the certificate, and the
// certificate must be one of an authority that is valid now.
func Load(certificate, key []byte, now time.Time) (*Authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	switch leaf := pair.Leaf; {
	case !ok:
		return nil, fmt.Errorf("read the certificate authority: its key (%T) cannot sign", pair.PrivateKey)
	case !leaf.IsCA:
		return nil, errors.New("read the certificate authority: its certificate is not one of an authority")
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("the certificate authority expired at %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return &Authority{certificate: pair.Leaf, key: signer, pem: certificate}, nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return bytes.Clone(a.pem) }

// Certificate is that of the authority.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Check returns why pair does not serve request any more, or nil if it does.
func (a *Authority) Check(pair Pair, request Request, now time.Time) error {
	leaf, err := Inspect(pair, request, now)
	switch {
	case err != nil:
		return err
	case leaf.CheckSignatureFrom(a.certificate) != nil:
		return errors.New("it was signed by another authority")
	case now.Add(renewBefore).After(leaf.NotAfter) && leaf.NotAfter.Before(a.certificate.NotAfter):
		return fmt.Errorf("it ends at %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// Inspect returns the certificate of pair if it is valid now, and for what request describes; it does not matter who has signed it.
func Inspect(pair Pair, request Request, now time.Time) (*x509.Certificate, error) {
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	leaf := parsed.Leaf
	switch {
	case now.Before(leaf.NotBefore):
		err = fmt.Errorf("it is valid from %s only", leaf.NotBefore.Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		err = fmt.Errorf("it ended at %s", leaf.NotAfter.Format(time.RFC3339))
	case !slices.Equal(leaf.ExtKeyUsage, request.usage()):
		err = errors.New("it is for another use")
	case leaf.Subject.CommonName != request.CommonName || !sameNames(leaf.Subject.Organization, request.Organizations):
		err = fmt.Errorf("it is for %s", leaf.Subject)
	case !sameNames(leaf.DNSNames, request.Hosts) || !sameNames(texts(leaf.IPAddresses), texts(request.IPs)):
		err = fmt.Errorf("it is for %v and %v", leaf.DNSNames, leaf.IPAddresses)
	}
	return leaf, err
}

// Made is when a certificate of this package was made.
func Made(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(clockSkew) }

// New makes an authority (ECDSA P-256) that signs itself, and no other authority.
func New(name string, lifetime time.Duration, now time.Time, random io.Reader) (Pair, error) {
	return sign(&x509.Certificate{
		Subject:        pkix.Name{CommonName: name},
		NotAfter:       now.Add(lifetime),
		KeyUsage:       x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:           true,
		MaxPathLenZero: true,
	}, nil, now, random)
}

// Issue signs a certificate (ECDSA P-256, never longer than the authority's own) with a new key.
func (a *Authority) Issue(request Request, now time.Time, random io.Reader) (Pair, error) {
	end := now.Add(cmp.Or(request.Lifetime, year))
	if end.After(a.certificate.NotAfter) {
		end = a.certificate.NotAfter
	}
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: request.CommonName, Organization: request.Organizations},
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: request.usage(),
		DNSNames:    request.Hosts,
		IPAddresses: request.IPs,
	}, a, now, random)
}

// sign completes a certificate and signs it by an authority, or by its own key.
func sign(template *x509.Certificate, by *Authority, now time.Time, random io.Reader) (Pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key for %s: %w", name, err)
	}
	// 127 bits: positive and within the 20 octets of RFC 5280, section 4.1.2.2.
	serial, err := rand.Int(random, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("make a serial number for %s: %w", name, err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = now.Add(-clockSkew)
	template.BasicConstraintsValid = true
	if by == nil {
		by = &Authority{certificate: template, key: key}
	}
	der, err := x509.CreateCertificate(random, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return Pair{Certificate: Encode(der), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}, nil
}

// Encode returns the PEM of a certificate.
func Encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: der})
}

// Authorities returns the certificates of authorities in PEM. Anything else in it is left out.
func Authorities(text []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == certificateType && certificate.IsCA {
			found = append(found, certificate)
		}
	}
}

const certificateType = "CERTIFICATE"

// usage keeps a serving certificate from being anyone's identity, and the other way round.
func (r Request) usage() []x509.ExtKeyUsage {
	if len(r.Hosts)+len(r.IPs) > 0 {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func texts(ips []net.IP) []string {
	all := make([]string, 0, len(ips))
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}
