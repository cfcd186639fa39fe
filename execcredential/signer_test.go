package execcredential_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// device is a key that signs and shows nothing else of itself, as in a PKCS#11 token.
type device struct {
	public crypto.PublicKey
	sign   func([]byte, crypto.SignerOpts) ([]byte, error)
	count  atomic.Int32
}

func newDevice(t testing.TB) *device {
	t.Helper()
	key := need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return &device{public: key.Public(), sign: func(digest []byte, o crypto.SignerOpts) ([]byte, error) { return key.Sign(rand.Reader, digest, o) }}
}

func (d *device) Public() crypto.PublicKey { return d.public }

func (d *device) Sign(_ io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	d.count.Add(1)
	return d.sign(digest, o)
}

func TestKeyOfADevice(t *testing.T) {
	server := serve(t, true, all)
	device := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: device}}, nil
	})
	if got, _, err := get(&http.Client{Transport: source.Transport(server.transport())}, server.URL); got != " device " || device.count.Load() != 1 {
		t.Errorf("the server saw %q, error %v, %d signatures", got, err, device.count.Load())
	}
}

func TestMaterialIsChecked(t *testing.T) {
	authority, device := exectest.NewAuthority(t), newDevice(t)
	issue := func(key crypto.PublicKey, until time.Time) [][]byte {
		block, _ := pem.Decode([]byte(authority.IssueFor(key, "device", start.Add(-time.Hour), until)))
		return [][]byte{block.Bytes}
	}
	for want, m := range map[execcredential.Problem]execcredential.Material{
		execcredential.NoCredential:       {},
		execcredential.UnsafeToken:        {Token: "a\nb"},
		execcredential.BadCertificate:     {Certificate: &tls.Certificate{PrivateKey: device}},
		execcredential.BadKey:             {Certificate: &tls.Certificate{Certificate: issue(device.Public(), start.Add(time.Hour)), PrivateKey: "no signer"}},
		execcredential.MismatchedPair:     {Certificate: &tls.Certificate{Certificate: issue(newDevice(t).Public(), start.Add(time.Hour)), PrivateKey: device}},
		execcredential.CertificateExpired: {Certificate: &tls.Certificate{Certificate: issue(device.Public(), start.Add(-time.Minute)), PrivateKey: device}},
	} {
		if _, err := execcredential.NewCredential(m, start); !errors.Is(err, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
