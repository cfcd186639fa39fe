package keys

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// documentVersion is the version of ring.json that this package reads and writes.
const documentVersion = 1

// Encoded is a ring as a store keeps it.
type Encoded struct {
	// Document is ring.json: it says which keys there are, their states and times. It holds nothing private.
	Document []byte
	// Private has the private key of each key as PEM: one block PRIVATE KEY (PKCS #8, RFC 5958).
	Private map[identity.KeyID][]byte
}

// document is the shape of ring.json.
type document struct {
	Version int           `json:"version"`
	Keys    []documentKey `json:"keys"`
}

type documentKey struct {
	ID          identity.KeyID     `json:"kid"`
	Algorithm   identity.Algorithm `json:"algorithm"`
	State       State              `json:"state"`
	PublishedAt time.Time          `json:"publishedAt"`
	ActivatedAt time.Time          `json:"activatedAt,omitzero"`
}

// Encode returns the ring as a store keeps it. Equal rings give equal documents. A ring that is not valid is an error: what
// is written can be read again.
func (r Ring) Encode() (Encoded, error) {
	if err := r.Validate(); err != nil {
		return Encoded{}, err
	}
	doc := document{Version: documentVersion}
	private := make(map[identity.KeyID][]byte, len(r.Keys))
	for _, key := range r.Keys {
		der, err := x509.MarshalPKCS8PrivateKey(key.Private)
		if err != nil {
			return Encoded{}, fmt.Errorf("encode private key of %s: %w", key.ID, err)
		}
		private[key.ID] = pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
		doc.Keys = append(doc.Keys, documentKey{
			ID: key.ID, Algorithm: key.Algorithm, State: key.State,
			PublishedAt: key.PublishedAt.UTC(), ActivatedAt: key.ActivatedAt.UTC(),
		})
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return Encoded{}, fmt.Errorf("encode ring: %w", err)
	}
	return Encoded{Document: append(data, '\n'), Private: private}, nil
}
