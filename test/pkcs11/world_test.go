//go:build cgo

package pkcs11

import (
	"bytes"
	"context"
	"crypto"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/ThalesGroup/crypto11"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/test/testkit"
)

// kinds of keys that both devices and Kubernetes know.
var kinds = map[string]func(*crypto11.Context, string) error{
	"P-256": func(c *crypto11.Context, label string) error {
		return testkit.Err(c.GenerateECDSAKeyPairWithLabel([]byte(label), []byte(label), elliptic.P256()))
	},
	"RSA 2048": func(c *crypto11.Context, label string) error {
		return testkit.Err(c.GenerateRSAKeyPairWithLabel([]byte(label), []byte(label), 2048))
	},
}

// newToken makes a token of the test's own, with a key of some kind that cannot be taken out.
func newToken(t *testing.T, kind, label string) *Token {
	t.Helper()
	if missing != nil {
		skip(t, missing.Error())
	}
	token := testkit.Need(makeToken(kind, label))(t)
	t.Cleanup(func() { _ = token.Close() })
	return token
}

var count atomic.Int32

func makeToken(kind, label string) (*Token, error) {
	token := &Token{Driver: driver, Name: fmt.Sprintf("test %d", count.Add(1)), PIN: pin, Label: label}
	if out, err := exec.Command("softhsm2-util", "--init-token", "--free", "--label", token.Name, "--so-pin", pin, "--pin", pin).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a token: %w\n%s", err, out)
	}
	return token, addKey(token, kind, label)
}

func addKey(token *Token, kind, label string) error {
	opened, err := crypto11.Configure(&crypto11.Config{Path: driver, TokenLabel: token.Name, Pin: pin})
	if err != nil {
		return err
	}
	return errors.Join(kinds[kind](opened, label), opened.Close())
}

// enrol gets the token a certificate for a user.
func enrol(t *testing.T, token *Token, user string, groups ...string) {
	t.Helper()
	request := testkit.Need(token.Request(user, groups...))(t)
	certificate := testkit.Need(shared.sign(t.Context(), request))(t)
	testkit.Must(t, token.Keep(certificate))
}

// newPool is closed before the tokens whose keys it uses.
func newPool(t *testing.T, options execcredential.Options) *execcredential.Pool {
	t.Helper()
	pool := testkit.Need(execcredential.NewPool(options))(t)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// counting is a provider whose keys count what they sign.
type counting struct {
	execcredential.Provider
	runs, signatures atomic.Int32
}

func (c *counting) Credential(ctx context.Context) (*execcredential.Credential, error) {
	c.runs.Add(1)
	credential, err := c.Provider.Credential(ctx)
	if err != nil {
		return nil, err
	}
	certificate := *credential.Certificate()
	certificate.PrivateKey = &countingKey{certificate.PrivateKey.(crypto.Signer), &c.signatures}
	return execcredential.NewCredential(execcredential.Material{Certificate: &certificate, Expires: credential.Expires()}, certificate.Leaf.NotBefore)
}

type countingKey struct {
	crypto.Signer
	signatures *atomic.Int32
}

func (k *countingKey) Sign(random io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	k.signatures.Add(1)
	return k.Signer.Sign(random, digest, o)
}

// base makes connections to the cluster, one for each request, and of one version of TLS.
func base(t *testing.T, version uint16) *http.Transport {
	t.Helper()
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(shared.admin.CAData) {
		t.Fatal("no certificate authority")
	}
	return &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authorities, MinVersion: version, MaxVersion: version},
		DisableKeepAlives: true,
	}
}

// whoami returns the user that the API server takes a client for.
func whoami(ctx context.Context, client *http.Client) (authenticationv1.UserInfo, error) {
	none := authenticationv1.UserInfo{}
	body := []byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, shared.admin.Host+"/apis/authentication.k8s.io/v1/selfsubjectreviews", bytes.NewReader(body))
	if err != nil {
		return none, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return none, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return none, err
	}
	if response.StatusCode != http.StatusCreated {
		return none, fmt.Errorf("%s: %s", response.Status, content)
	}
	var review authenticationv1.SelfSubjectReview
	return review.Status.UserInfo, json.Unmarshal(content, &review)
}
