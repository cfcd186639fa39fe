package execcredential

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"time"
)

// clockSkew is how far ahead the clock of a certificate's issuer may be.
const clockSkew = time.Minute

// keyPair parses a certificate with its key. Its errors are *OutputError, and hold nothing of either.
func keyPair(certificate, key string, now time.Time) (*tls.Certificate, error) {
	switch {
	case key == "":
		return nil, &OutputError{Problem: CertificateOnly, Detail: "clientCertificateData needs clientKeyData beside it"}
	case certificate == "":
		return nil, &OutputError{Problem: KeyOnly, Detail: "clientKeyData needs clientCertificateData beside it"}
	}
	var pair tls.Certificate
	for rest := []byte(certificate); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			pair.Certificate = append(pair.Certificate, block.Bytes)
		}
	}
	if len(pair.Certificate) == 0 {
		return nil, &OutputError{Problem: BadCertificate, Detail: notPEM("clientCertificateData", "CERTIFICATE", certificate)}
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, &OutputError{Problem: BadCertificate, Detail: err.Error()}
	}
	private, found := privateKey([]byte(key))
	switch {
	case !found:
		return nil, &OutputError{Problem: BadKey, Detail: notPEM("clientKeyData", "PRIVATE KEY", key)}
	case private == nil:
		return nil, &OutputError{Problem: BadKey, Detail: "it is neither PKCS #8, PKCS #1 nor SEC 1, or it is encrypted"}
	}
	pair.PrivateKey, pair.Leaf = private, leaf
	return &pair, checkCertificate(&pair, now)
}

// privateKey returns the first key in PEM. A key that can't be parsed is found and nil: the parser's error would be about the key.
func privateKey(data []byte) (key crypto.Signer, found bool) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, false
		}
		if block.Type != "PRIVATE KEY" && !strings.HasSuffix(block.Type, " PRIVATE KEY") {
			continue
		}
		if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			signer, _ := k.(crypto.Signer)
			return signer, true
		}
		if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return k, true
		}
		if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return k, true
		}
		return nil, true
	}
}

// checkCertificate checks a certificate at the time of execution, as KEP-541 requires, and its key against it. It fills in the Leaf.
func checkCertificate(pair *tls.Certificate, now time.Time) error {
	if len(pair.Certificate) == 0 {
		return &OutputError{Problem: BadCertificate, Detail: "the chain is empty"}
	}
	if pair.Leaf == nil || !bytes.Equal(pair.Leaf.Raw, pair.Certificate[0]) {
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return &OutputError{Problem: BadCertificate, Detail: err.Error()}
		}
		pair.Leaf = leaf
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return &OutputError{Problem: BadKey, Detail: fmt.Sprintf("%T can't sign", pair.PrivateKey)}
	}
	matches, err := signsFor(signer, pair.Leaf)
	if err != nil {
		return &OutputError{Problem: BadKey, Detail: err.Error()}
	}
	if !matches {
		return &OutputError{Problem: MismatchedPair, Detail: "the first certificate must be that of the key, intermediate ones follow"}
	}
	if now.After(pair.Leaf.NotAfter) {
		return &OutputError{Problem: CertificateExpired, Detail: "it was valid until " + pair.Leaf.NotAfter.UTC().Format(time.RFC3339)}
	}
	if now.Add(clockSkew).Before(pair.Leaf.NotBefore) {
		return &OutputError{Problem: CertificateNotValid, Detail: "it is valid from " + pair.Leaf.NotBefore.UTC().Format(time.RFC3339)}
	}
	return nil
}

// signsFor reports whether a key is that of a certificate. An empty key of Go's own types panics when it is looked at.
func signsFor(signer crypto.Signer, leaf *x509.Certificate) (matches bool, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%T is empty", signer)
		}
	}()
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return false, fmt.Errorf("a public key of type %T can't be compared", signer.Public())
	}
	return public.Equal(leaf.PublicKey), nil
}

func notPEM(field, block, data string) string {
	if decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), "")); err == nil && bytes.Contains(decoded, []byte("-----BEGIN ")) {
		return field + " is base64 of PEM; it must be the PEM itself"
	}
	if strings.Contains(data, "-----BEGIN ") {
		return fmt.Sprintf("%s has PEM, but no complete block of type %s", field, block)
	}
	return field + " is not PEM"
}

// checkToken accepts what a header carries unchanged: visible ASCII.
func checkToken(token string) error {
	if i := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }); i >= 0 {
		detail := fmt.Sprintf("byte %d of %d is not a visible ASCII character", i, len(token))
		switch {
		case len(token) > 7 && strings.EqualFold(token[:7], "bearer "):
			detail = `it begins with "Bearer ", which is not part of a token`
		case strings.TrimRight(token, "\r\n") == token[:i]:
			detail = "it ends with a newline"
		case strings.TrimSpace(token) == token[:i]:
			detail = "it ends with white space"
		}
		return &OutputError{Problem: UnsafeToken, Detail: detail}
	}
	return nil
}
