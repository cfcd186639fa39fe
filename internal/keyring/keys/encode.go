package keys

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// The versions of ring.json that this package reads; it writes the last. Version 1 has neither what became of keys nor
// their terms: its keys are active and spare only, and all of them have been published.
const (
	firstVersion    = 1
	documentVersion = 2
)

// Encoded is a ring as a store keeps it.
type Encoded struct {
	// Document is ring.json: the keys with their states and times. It holds nothing private.
	Document []byte
	// Private has the private key of each key as PEM: one block PRIVATE KEY (PKCS #8, RFC 5958).
	Private map[identity.KeyID][]byte
}

// document is the shape of ring.json.
type document struct {
	Version     int           `json:"version"`
	Revision    int64         `json:"revision,omitzero"`
	Keys        []documentKey `json:"keys"`
	Compromised []Compromised `json:"compromised,omitempty"`
	Requests    []Request     `json:"requests,omitempty"`
	History     []Event       `json:"history,omitempty"`
	Resumed     *Resuming     `json:"resumed,omitempty"`
}

type documentKey struct {
	ID                 identity.KeyID     `json:"kid"`
	Algorithm          identity.Algorithm `json:"algorithm"`
	State              State              `json:"state"`
	PublishedAt        time.Time          `json:"publishedAt,omitzero"`
	ActivatedAt        time.Time          `json:"activatedAt,omitzero"`
	RetiredAt          time.Time          `json:"retiredAt,omitzero"`
	LastExpiry         time.Time          `json:"lastExpiry,omitzero"`
	MaxLifetimeSeconds int64              `json:"maxLifetimeSeconds,omitzero"`
	StalenessSeconds   int64              `json:"stalenessSeconds,omitzero"`
}

// Encode returns the ring as a store keeps it. Equal rings give equal documents. An invalid ring is an error: all
// that is written can be read again.
func (r Ring) Encode() (Encoded, error) {
	if err := r.Validate(); err != nil {
		return Encoded{}, err
	}
	private := make(map[identity.KeyID][]byte, len(r.Keys))
	for _, key := range r.Keys {
		der, err := x509.MarshalPKCS8PrivateKey(key.Private)
		if err != nil {
			return Encoded{}, fmt.Errorf("encode private key of %s: %w", key.ID, err)
		}
		private[key.ID] = pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	}
	data, err := r.encodeDocument()
	if err != nil {
		return Encoded{}, fmt.Errorf("encode ring: %w", err)
	}
	return Encoded{Document: data, Private: private}, nil
}

func (r Ring) encodeDocument() ([]byte, error) {
	doc := document{Version: documentVersion, Revision: r.Revision}
	for _, key := range r.Keys {
		doc.Keys = append(doc.Keys, documentKey{
			ID: key.ID, Algorithm: key.Algorithm, State: key.State,
			PublishedAt: key.PublishedAt.UTC(), ActivatedAt: key.ActivatedAt.UTC(),
			RetiredAt: key.RetiredAt.UTC(), LastExpiry: key.LastExpiry.UTC(),
			MaxLifetimeSeconds: int64(key.Terms.MaxLifetime / time.Second), StalenessSeconds: int64(key.Terms.Staleness / time.Second),
		})
	}
	for _, gone := range r.Compromised {
		gone.RevokedAt, gone.ActivatedAt, gone.LastExpiry = gone.RevokedAt.UTC(), gone.ActivatedAt.UTC(), gone.LastExpiry.UTC()
		doc.Compromised = append(doc.Compromised, gone)
	}
	for _, request := range r.Requests {
		request.At = request.At.UTC()
		doc.Requests = append(doc.Requests, request)
	}
	for _, event := range r.History {
		event.At = event.At.UTC()
		doc.History = append(doc.History, event)
	}
	if r.Resumed != nil {
		doc.Resumed = &Resuming{At: r.Resumed.At.UTC(), Cause: r.Resumed.Cause}
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	return append(data, '\n'), err
}
