//go:build cgo

package pkcs11

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/test/testkit"
)

// A restricted key of a TPM signs only what the TPM has hashed itself. The library requests signatures of messages, as crypto/tls
// does, and not of digests; and it finds the key again after the TPM was away.
func TestRestrictedKeyOfATPM(t *testing.T) {
	machine := newMachine(t)
	key := testkit.Need(machine.key())(t)
	if _, err := key.Sign(nil, make([]byte, 32), crypto.SHA256); !errors.Is(err, tpm2.TPMRCTicket) {
		t.Fatalf("the key is not restricted: for a digest from elsewhere, it returns %v", err)
	}
	der := testkit.Need(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "machine", Organization: []string{"machines"}}}, key))(t)
	signed := testkit.Need(shared.sign(t.Context(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})))(t)
	block, _ := pem.Decode(signed)
	clock := exectest.NewClock(time.Now())
	source := newPool(t, execcredential.Options{Clock: clock}).SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) {
		key, err := machine.key()
		if err != nil {
			return nil, err
		}
		certificate := &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
		return execcredential.NewCredential(execcredential.Material{Certificate: certificate}, time.Now())
	}))
	client := &http.Client{Transport: source.Transport(base(t, tls.VersionTLS13))}
	works := func() {
		t.Helper()
		if user, err := whoami(t.Context(), client); err != nil || user.Username != "machine" || !slices.Contains(user.Groups, "machines") {
			t.Fatalf("the server saw %+v, error %v", user, err)
		}
	}
	works()
	clock.Advance(time.Second) // past the pause between two runs that succeed
	machine.stop()
	if _, err := whoami(t.Context(), client); !errors.As(err, new(*execcredential.SignError)) {
		t.Fatalf("error %v, want a SignError", err)
	}
	clock.Advance(time.Second)
	if user, err := whoami(t.Context(), client); err == nil {
		t.Fatalf("without its key, the client is %q", user.Username)
	}
	machine.start(t)
	clock.Advance(time.Minute)
	works()
}

// machine has a TPM, which is a program here.
type machine struct {
	dir    string
	stop   func()
	opened net.Conn // a TPM has one client at a time
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if _, err := exec.LookPath("swtpm"); err != nil {
		skip(t, "swtpm is missing; install it (apt-get install swtpm)")
	}
	dir, err := os.MkdirTemp("", "tpm") // whose name is short enough for a socket
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &machine{dir: dir}
	m.start(t)
	t.Cleanup(func() { m.stop() })
	return m
}

func (m *machine) socket() string { return filepath.Join(m.dir, "socket") }

// start runs the TPM until stop. Its seeds, and so its keys, are in dir.
func (m *machine) start(t *testing.T) {
	t.Helper()
	_ = os.Remove(m.socket())
	cmd := exec.Command("swtpm", "socket", "--tpm2", "--tpmstate", "dir="+m.dir, "--server", "type=unixio,path="+m.socket(), "--flags", "not-need-init,startup-clear")
	testkit.Must(t, cmd.Start())
	m.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if m.opened != nil {
			_ = m.opened.Close()
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-tick.C {
		if connection, err := net.Dial("unix", m.socket()); err == nil {
			_ = connection.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the TPM does not start")
		}
	}
}

// key is the TPM's key for signing: a primary key of its owner, which the same TPM makes the same each time.
func (m *machine) key() (*tpmKey, error) {
	if m.opened != nil {
		_ = m.opened.Close()
	}
	connection, err := net.Dial("unix", m.socket())
	if err != nil {
		return nil, fmt.Errorf("open the TPM: %w", err)
	}
	m.opened = connection
	chip := transport.FromReadWriter(connection)
	scheme := tpm2.TPMTECCScheme{Scheme: tpm2.TPMAlgECDSA, Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256})}
	made, err := tpm2.CreatePrimary{
		PrimaryHandle: tpm2.TPMRHOwner,
		InPublic: tpm2.New2B(tpm2.TPMTPublic{
			Type:    tpm2.TPMAlgECC,
			NameAlg: tpm2.TPMAlgSHA256,
			ObjectAttributes: tpm2.TPMAObject{
				FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true, NoDA: true, Restricted: true, SignEncrypt: true,
			},
			Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{Scheme: scheme, CurveID: tpm2.TPMECCNistP256}),
		}),
	}.Execute(chip)
	if err != nil {
		return nil, fmt.Errorf("make a key in the TPM: %w", err)
	}
	public, err := made.OutPublic.Contents()
	if err != nil {
		return nil, err
	}
	point, err := public.Unique.ECC()
	if err != nil {
		return nil, err
	}
	encoded := slices.Concat([]byte{4}, leftPad(point.X.Buffer), leftPad(point.Y.Buffer))
	parsed, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), encoded)
	if err != nil {
		return nil, err
	}
	return &tpmKey{chip: chip, handle: tpm2.NamedHandle{Handle: made.ObjectHandle, Name: made.Name}, public: parsed}, nil
}

func leftPad(number []byte) []byte { return new(big.Int).SetBytes(number).FillBytes(make([]byte, 32)) }

// tpmKey is a crypto.MessageSigner for messages of at most 1024 bytes: those of TLS 1.3 are shorter.
type tpmKey struct {
	mu     sync.Mutex // a TPM does one thing at a time
	chip   transport.TPM
	handle tpm2.NamedHandle
	public *ecdsa.PublicKey
}

func (k *tpmKey) Public() crypto.PublicKey { return k.public }

// Sign requests a signature without a ticket for the origin of the digest.
func (k *tpmKey) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	return k.sign(digest, tpm2.TPMTTKHashCheck{Tag: tpm2.TPMSTHashCheck, Hierarchy: tpm2.TPMRHNull})
}

func (k *tpmKey) SignMessage(_ io.Reader, message []byte, o crypto.SignerOpts) ([]byte, error) {
	if o.HashFunc() != crypto.SHA256 {
		return nil, fmt.Errorf("the key is for SHA-256, not %s", o.HashFunc())
	}
	k.mu.Lock()
	hashed, err := tpm2.Hash{Data: tpm2.TPM2BMaxBuffer{Buffer: message}, HashAlg: tpm2.TPMAlgSHA256, Hierarchy: tpm2.TPMRHOwner}.Execute(k.chip)
	k.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("hash in the TPM: %w", err)
	}
	return k.sign(hashed.OutHash.Buffer, hashed.Validation)
}

func (k *tpmKey) sign(digest []byte, ticket tpm2.TPMTTKHashCheck) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	signed, err := tpm2.Sign{KeyHandle: k.handle, Digest: tpm2.TPM2BDigest{Buffer: digest}, Validation: ticket}.Execute(k.chip)
	if err != nil {
		return nil, fmt.Errorf("sign in the TPM: %w", err)
	}
	signature, err := signed.Signature.Signature.ECDSA()
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(signature.SignatureR.Buffer), new(big.Int).SetBytes(signature.SignatureS.Buffer)})
}
