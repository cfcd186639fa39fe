package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/filewatch"
)

// maxPEMBytes is more than any certificate chain or private key has.
const maxPEMBytes = 1 << 20

// Recorder counts what happens to a key pair.
type Recorder interface {
	CertificateLoaded(notAfter time.Time)
	CertificateRefused()
}

// KeyPair is a serving certificate with its private key, from two files. The pair in use always matches: a
// new one that does not, whose key others can read, or that has expired before the one in use, is refused and the last good
// one stays.
type KeyPair struct {
	certFile, keyFile string
	interval          time.Duration // between looks at the files
	now               func() time.Time
	recorder          Recorder
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]
}

// NewKeyPair loads the pair, or returns its fault.
func NewKeyPair(certFile, keyFile string, recorder Recorder, log *slog.Logger) (*KeyPair, error) {
	k := &KeyPair{recorder: recorder, log: log, now: time.Now, interval: filewatch.Interval}
	var err error
	if k.certFile, err = filepath.Abs(certFile); err != nil {
		return nil, fmt.Errorf("find certificate file %s: %w", certFile, err)
	}
	if k.keyFile, err = filepath.Abs(keyFile); err != nil {
		return nil, fmt.Errorf("find private key file %s: %w", keyFile, err)
	}
	pair, err := k.load()
	if err != nil {
		return nil, err
	}
	k.use(pair)
	return k, nil
}

// GetCertificate is for tls.Config: it returns the pair in use.
func (k *KeyPair) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.current.Load(), nil
}

// Run follows changes of the files until ctx is done.
func (k *KeyPair) Run(ctx context.Context) error {
	refused := ""
	filewatch.Run(ctx, k.interval, func() {
		pair, err := k.load()
		if err == nil {
			err = k.worse(pair)
		}
		switch {
		case err != nil && err.Error() != refused:
			refused = err.Error()
			k.recorder.CertificateRefused()
			k.log.Error("serving certificate refused, the last good one stays in use", "error", err)
		case err == nil:
			refused = ""
			if !samePair(pair, k.current.Load()) {
				k.use(pair)
			}
		}
	}, k.certFile, k.keyFile)
	return nil
}

// worse returns why a pair must not replace the one in use: it has expired, and that one has not.
func (k *KeyPair) worse(pair *tls.Certificate) error {
	now := k.now()
	if now.After(pair.Leaf.NotAfter) && now.Before(k.current.Load().Leaf.NotAfter) {
		return fmt.Errorf("certificate %s expired at %s, and the one in use is valid until %s", k.certFile,
			pair.Leaf.NotAfter.UTC().Format(time.RFC3339), k.current.Load().Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

func (k *KeyPair) use(pair *tls.Certificate) {
	k.current.Store(pair)
	k.recorder.CertificateLoaded(pair.Leaf.NotAfter)
	k.log.Info("serving certificate loaded", "subject", pair.Leaf.Subject.String(), "notAfter", pair.Leaf.NotAfter)
}

// ofOthers returns the bits of a mode by which others than this process can use a file. A Secret in a pod belongs to root, and its process
// reads it by a group of its own (fsGroup): that right to read is not one of others.
func ofOthers(mode os.FileMode, owner, process int) os.FileMode {
	mode &= 0o077
	if owner == 0 && process != 0 {
		mode &^= 0o040
	}
	return mode
}

func (k *KeyPair) load() (*tls.Certificate, error) {
	files, err := readTogether(maxPEMBytes, k.certFile, k.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read serving certificate: %w", err)
	}
	if key := files[1].info; ofOthers(key.Mode().Perm(), ownerOf(key), os.Geteuid()) != 0 {
		return nil, fmt.Errorf("private key file %s has mode %04o, so that others than its owner can use it: run chmod 600 %[1]s, or give the volume of a pod defaultMode 0400", k.keyFile, key.Mode().Perm())
	}
	pair, err := tls.X509KeyPair(files[0].data, files[1].data)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with private key %s: %w", k.certFile, k.keyFile, err)
	}
	return &pair, nil
}

// samePair compares the certificates alone: a private key that matches them is the same key.
func samePair(a, b *tls.Certificate) bool {
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}
