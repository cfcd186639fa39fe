package source

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

func pemCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// newPair is a certificate with its key, identified by its serial number.
func newPair(t testing.TB, serial int64) (certificate, key []byte) {
	t.Helper()
	pair := testkit.NewCertificate(t, x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(1_700_000_000+serial, 0),
	}, nil)
	return pair.PEM(), pair.KeyPEM()
}

type certificateCounts struct{ loaded, refused, expiry atomic.Int64 }

func (c *certificateCounts) CertificateLoaded(notAfter time.Time) {
	c.loaded.Add(1)
	c.expiry.Store(notAfter.Unix())
}
func (c *certificateCounts) CertificateRefused() { c.refused.Add(1) }

func serialOf(t testing.TB, pair *KeyPair) int64 {
	t.Helper()
	certificate, err := pair.GetCertificate(nil)
	must(t, err)
	return certificate.Leaf.SerialNumber.Int64()
}

func followPair(t *testing.T, certFile, keyFile string) (*KeyPair, *certificateCounts) {
	t.Helper()
	counts := &certificateCounts{}
	pair, err := NewKeyPair(certFile, keyFile, counts, silent())
	must(t, err)
	pair.interval = time.Millisecond
	start(t, pair.Run)
	return pair, counts
}

func TestKeyPairFollowsFiles(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	certificate, key := newPair(t, 1)
	put(t, certFile, certificate)
	put(t, keyFile, key)
	pair, counts := followPair(t, certFile, keyFile)
	for serial := int64(2); serial < 12; serial++ {
		certificate, key = newPair(t, serial)
		put(t, certFile, certificate)
		put(t, keyFile, key)
		testkit.Eventually(t, fmt.Sprintf("certificate %d is in use", serial), func() bool { return serialOf(t, pair) == serial })
	}
	testkit.Eventually(t, "the expiry is recorded", func() bool { return counts.expiry.Load() == 1_700_000_011 })
}

func TestKeyPairFollowsASecretVolume(t *testing.T) {
	volume := &volume{path: t.TempDir()}
	certificate, key := newPair(t, 1)
	volume.update(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	pair, counts := followPair(t, filepath.Join(volume.path, "tls.crt"), filepath.Join(volume.path, "tls.key"))
	for serial := int64(2); serial < 12; serial++ {
		certificate, key = newPair(t, serial)
		volume.update(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
		testkit.Eventually(t, fmt.Sprintf("certificate %d is in use", serial), func() bool { return serialOf(t, pair) == serial })
	}
	if refused := counts.refused.Load(); refused != 0 {
		t.Errorf("%d pairs were refused: files of two versions were read together", refused)
	}
}

func TestKeyPairKeepsTheLastGoodOne(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	certificate, key := newPair(t, 1)
	put(t, certFile, certificate)
	put(t, keyFile, key)
	pair, counts := followPair(t, certFile, keyFile)

	other, otherKey := newPair(t, 2)
	serial := int64(100)
	for what, spoil := range map[string]func(){
		"a certificate of another key": func() { put(t, certFile, other) },
		"garbage":                      func() { put(t, certFile, []byte("garbage")) },
		"no certificate":               func() { must(t, os.Remove(certFile)) },
		"a key that others can read":   func() { must(t, os.Chmod(keyFile, 0o644)) },
	} {
		refused := counts.refused.Load()
		spoil()
		testkit.Eventually(t, what+" is refused", func() bool { return counts.refused.Load() > refused })
		if serialOf(t, pair) != 1 {
			t.Errorf("%s took the place of the good pair", what)
		}
		// Another good pair comes and goes, so that the next bad one is a change.
		must(t, os.Chmod(keyFile, 0o600))
		serial++
		next, nextKey := newPair(t, serial)
		put(t, certFile, next)
		put(t, keyFile, nextKey)
		testkit.Eventually(t, "the next good pair is in use", func() bool { return serialOf(t, pair) == serial })
		put(t, certFile, certificate)
		put(t, keyFile, key)
		testkit.Eventually(t, "the good pair is back in use", func() bool { return serialOf(t, pair) == 1 })
	}
	put(t, certFile, other)
	put(t, keyFile, otherKey)
	testkit.Eventually(t, "a good pair is in use", func() bool { return serialOf(t, pair) == 2 })
}

func TestNewKeyPairRefuses(t *testing.T) {
	certificate, key := newPair(t, 1)
	other, _ := newPair(t, 2)
	for name, test := range map[string]struct {
		certificate []byte
		mode        os.FileMode
		want        string
	}{
		"a key that the group can read":  {certificate, 0o640, "mode 0640"},
		"a key that others can read":     {certificate, 0o604, "mode 0604"},
		"a key that others can write":    {certificate, 0o602, "mode 0602"},
		"a certificate of another key":   {other, 0o600, "private key does not match public key"},
		"an invalid certificate":         {[]byte("x"), 0o600, "failed to find any PEM data"},
		"a certificate that is missing":  {nil, 0o600, "no such file"},
		"a key that the owner may read":  {certificate, 0o400, ""},
		"a key that the owner may write": {certificate, 0o600, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
			if test.certificate != nil {
				put(t, certFile, test.certificate)
			}
			put(t, keyFile, key)
			must(t, os.Chmod(keyFile, test.mode))
			_, err := NewKeyPair(certFile, keyFile, &certificateCounts{}, silent())
			if test.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), folder) {
				t.Errorf("got error %v, want one with %q and the file", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE") {
				t.Error("the error prints the key")
			}
		})
	}
}

// The serial number is how long a certificate of newPair is valid from 2023 on.
func TestKeyPairIsNotReplacedByAnExpiredOne(t *testing.T) {
	const valid, expired, longer = 4_000_000_000, 5, 4_100_000_000
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	write := func(serial int64) {
		certificate, key := newPair(t, serial)
		put(t, certFile, certificate)
		put(t, keyFile, key)
	}
	write(valid)
	pair, counts := followPair(t, certFile, keyFile)
	write(expired)
	testkit.Eventually(t, "the expired certificate is refused", func() bool { return counts.refused.Load() > 0 })
	if got := serialOf(t, pair); got != valid {
		t.Errorf("certificate %d is in use", got)
	}
	write(longer)
	testkit.Eventually(t, "the next valid certificate is in use", func() bool { return serialOf(t, pair) == longer })
}

// In a pod that does not run as root, a Secret in a volume is root's, and is read by the group of the pod.
func TestWhoElseCanUseAKey(t *testing.T) {
	for name, test := range map[string]struct {
		mode           os.FileMode
		owner, process int
		private        bool
	}{
		"a volume with a group of the pod":  {0o440, 0, 65532, true},
		"a volume that the group can write": {0o460, 0, 65532, false},
		"a volume that all can read":        {0o444, 0, 65532, false},
		"a file of the user, for a group":   {0o640, 65532, 65532, false},
		"a file of another, for a group":    {0o640, 1000, 65532, false},
		"a file of root, for a group":       {0o640, 0, 0, false},
		"a file of the user":                {0o600, 65532, 65532, true},
		"an unknown owner":                  {0o440, -1, 65532, false},
	} {
		if got := ofOthers(test.mode, test.owner, test.process) == 0; got != test.private {
			t.Errorf("%s: private is %t", name, got)
		}
	}
}
