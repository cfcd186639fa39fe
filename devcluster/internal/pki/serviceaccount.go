package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"github.com/credence-id/credence/devcluster/internal/state"
)

// ensureServiceAccountKey keeps the key for good: every token of the cluster
// would end with it. RSA, because that is what relying parties expect of a cluster.
func ensureServiceAccountKey(files Pair) error {
	key, err := readKey(files.Key)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return fmt.Errorf("generate service account key: %w", err)
		}
		err = writeKey(files.Key, key)
	}
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode %s: %w", files.Cert, err)
	}
	return state.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}
