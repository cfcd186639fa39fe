package certificates

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

// A file may have more than its certificates, such as a private key. A caBundle, which everyone can read, has no other part of it.
func TestAuthoritiesAreCertificatesAlone(t *testing.T) {
	pair := testkit.Need(pki.New("of-others", time.Hour, time.Now(), rand.Reader))(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte) {
		t.Helper()
		testkit.Must(t, os.WriteFile(file, text, 0o600))
	}
	write(slices.Concat([]byte("subject=of-others\n"), pair.Certificate, pair.Key, pair.Certificate))
	if bundle, err := authorities(file); err != nil || !bytes.Equal(bundle, slices.Concat(pair.Certificate, pair.Certificate)) {
		t.Errorf("%v, %d bytes", err, len(bundle))
	}
	write(pair.Key)
	if _, err := authorities(file); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("a file without a certificate: %v", err)
	}
	if _, err := authorities(file + ".missing"); err == nil || !strings.Contains(err.Error(), "--ca-file") {
		t.Errorf("a missing file: %v", err)
	}
}
