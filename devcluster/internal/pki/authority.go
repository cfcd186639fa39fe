package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func ensureAuthority(files Pair, name string, now time.Time) (authority, error) {
	cert, err := readCertificate(files.Cert)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(files, name, now)
	}
	if err != nil {
		return authority{}, err
	}
	key, err := readKey(files.Key)
	if err != nil {
		return authority{}, err
	}
	if !sameKey(key.Public(), cert.PublicKey) {
		return authority{}, fmt.Errorf("%s is not the key of %s: restore the pair, or remove the directory to start a new cluster", files.Key, files.Cert)
	}
	if now.Add(renewBefore).After(cert.NotAfter) {
		return authority{}, fmt.Errorf("certificate authority %s ends at %s: remove its directory to make a new one (every client must then be given the new one)",
			files.Cert, cert.NotAfter.Format(time.RFC3339))
	}
	return authority{cert: cert, key: key}, nil
}

func newAuthority(files Pair, name string, now time.Time) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("generate key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, authority{cert: template, key: key}, key.Public())
	if err != nil {
		return authority{}, fmt.Errorf("sign %s: %w", name, err)
	}
	if err := writePair(files, cert, key); err != nil {
		return authority{}, err
	}
	return authority{cert: cert, key: key}, nil
}

func sign(template *x509.Certificate, by authority, public crypto.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, public, by.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
