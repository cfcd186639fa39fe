package execcredential

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Static are credentials that a kubeconfig has for a user: a token or a user name with a password, a client certificate with its key, or one of
// the first with the second. A Config that has them runs no program. Its zero value has no credentials.
type Static struct {
	// Token is a bearer token.
	Token string
	// TokenFile has a bearer token, which wins over Token. It is read again each minute, and when a server refuses the token.
	TokenFile string
	// Username and Password are for HTTP's Basic authentication.
	Username, Password string
	// CertificateData and KeyData are in PEM.
	CertificateData, KeyData []byte
	// CertificateFile and KeyFile have them where CertificateData or KeyData is empty; they are read again as TokenFile is.
	CertificateFile, KeyFile string
}

// fileLife is how long what was read from a file is used: as long as client-go does.
const fileLife = time.Minute

func (s Static) empty() bool {
	return s.Token == "" && s.TokenFile == "" && s.Username == "" && s.Password == "" && !s.hasCertificate()
}

func (s Static) hasCertificate() bool { return len(s.CertificateData) > 0 || s.CertificateFile != "" }

// validate returns a *ConfigError for what can't be used, or nil.
func (s Static) validate() error {
	if (s.Token != "" || s.TokenFile != "") && (s.Username != "" || s.Password != "") {
		return &ConfigError{Field: "token", Reason: "is set beside username or password; remove one of them"}
	}
	if s.hasCertificate() && len(s.KeyData) == 0 && s.KeyFile == "" {
		return &ConfigError{Field: "client-key", Reason: "is missing beside the client certificate"}
	}
	for field, path := range map[string]string{"tokenFile": s.TokenFile, "client-certificate": s.CertificateFile, "client-key": s.KeyFile} {
		if path != "" && !filepath.IsAbs(path) {
			return &ConfigError{Field: field, Reason: fmt.Sprintf("%q is not absolute", clip(path))}
		}
	}
	return nil
}

// staticProvider gives the credentials of a kubeconfig.
type staticProvider struct {
	Static
	clock Clock
}

// Credential reads the files.
func (p staticProvider) Credential(context.Context) (*Credential, error) {
	now := p.clock.Now()
	m := Material{Token: p.Token}
	if p.TokenFile != "" {
		token, err := os.ReadFile(p.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("exec credential: read the user's token: %w", err)
		}
		if m.Token = strings.TrimSpace(string(token)); m.Token == "" {
			return nil, fmt.Errorf("exec credential: read the user's token: %s is empty", p.TokenFile)
		}
		m.Expires = now.Add(fileLife)
	}
	if err := checkToken(m.Token); err != nil {
		return nil, err
	}
	if p.hasCertificate() {
		certificate, errCertificate := content(p.CertificateData, p.CertificateFile)
		key, errKey := content(p.KeyData, p.KeyFile)
		if err := errors.Join(errCertificate, errKey); err != nil {
			return nil, fmt.Errorf("exec credential: read the user's client certificate: %w", err)
		}
		pair, err := keyPair(string(certificate), string(key), now)
		if err != nil {
			return nil, err
		}
		m.Certificate = pair
		if len(p.CertificateData) == 0 || len(p.KeyData) == 0 {
			m.Expires = now.Add(fileLife)
		}
	}
	c := newCredential(m)
	if p.Username != "" || p.Password != "" {
		c.authorization = []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(p.Username+":"+p.Password))}
	}
	return c, nil
}

func content(data []byte, path string) ([]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	return os.ReadFile(path)
}
