package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// maxKeys is far more than a ring ever holds; a document with more of them was not written by Credence.
const maxKeys = 64

// Decode returns the ring of a document that Encode wrote. private is asked for the PEM of each key, with an ID that is
// known to be well formed (43 characters of base64url) and so can be part of a file name. Unknown, repeated and missing
// members, unknown values and trailing data are errors that name the field; so is everything that Validate refuses.
func Decode(data []byte, private func(identity.KeyID) ([]byte, error)) (Ring, error) {
	doc, err := decodeDocument(data)
	if err != nil {
		return Ring{}, err
	}
	var ring Ring
	for i, entry := range doc.Keys {
		encoded, err := private(entry.ID)
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: private key of %s: %w", i, entry.ID, err)
		}
		signer, err := DecodePrivate(encoded)
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: private key of %s: %w", i, entry.ID, err)
		}
		ring.Keys = append(ring.Keys, Key{
			ID: entry.ID, Algorithm: entry.Algorithm, State: entry.State, Private: signer,
			PublishedAt: entry.PublishedAt, ActivatedAt: entry.ActivatedAt,
		})
	}
	if err := ring.Validate(); err != nil {
		return Ring{}, err
	}
	return ring, nil
}

func decodeDocument(data []byte) (document, error) {
	top, err := decodeObject("", data, "version", "keys")
	if err != nil {
		return document{}, err
	}
	var doc document
	if err := top.decode("version", &doc.Version); err != nil {
		return document{}, err
	}
	if doc.Version != documentVersion {
		return document{}, fmt.Errorf("version: %d is unknown, this program reads version %d", doc.Version, documentVersion)
	}
	var entries []json.RawMessage
	if err := top.decode("keys", &entries); err != nil {
		return document{}, err
	}
	if len(entries) > maxKeys {
		return document{}, fmt.Errorf("keys: %d entries, at most %d are read", len(entries), maxKeys)
	}
	for i, entry := range entries {
		key, err := decodeKey(fmt.Sprintf("keys[%d]", i), entry)
		if err != nil {
			return document{}, err
		}
		doc.Keys = append(doc.Keys, key)
	}
	return doc, nil
}

func decodeKey(path string, data []byte) (documentKey, error) {
	entry, err := decodeObject(path, data, "kid", "algorithm", "state", "publishedAt", "activatedAt")
	if err != nil {
		return documentKey{}, err
	}
	var key documentKey
	if err := entry.decode("kid", &key.ID); err != nil {
		return documentKey{}, err
	}
	if !WellFormed(key.ID) {
		return documentKey{}, fmt.Errorf("%s.kid: %.64q is not the base64url of a SHA-256 sum", path, key.ID)
	}
	if err := entry.decode("algorithm", &key.Algorithm); err != nil {
		return documentKey{}, err
	}
	if err := entry.decode("state", &key.State); err != nil {
		return documentKey{}, err
	}
	if key.PublishedAt, err = entry.time("publishedAt"); err != nil {
		return documentKey{}, err
	}
	if entry.has("activatedAt") {
		if key.ActivatedAt, err = entry.time("activatedAt"); err != nil {
			return documentKey{}, err
		}
	}
	return key, nil
}

// WellFormed says whether an ID has the form of a kid; such a name can not leave the directory that it is looked up in.
func WellFormed(id identity.KeyID) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(string(id))
	return err == nil && len(sum) == sha256.Size && len(id) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}

// time decodes a member that holds a time of RFC 3339.
func (o object) time(name string) (time.Time, error) {
	var t time.Time
	if err := o.decode(name, &t); err != nil {
		return time.Time{}, err
	}
	// An offset can carry a time out of the years that RFC 3339 can write.
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return time.Time{}, fmt.Errorf("%s: %s is out of range", o.field(name), o.members[name])
	}
	return t.UTC(), nil
}
