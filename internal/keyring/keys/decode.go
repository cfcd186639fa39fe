package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/credence-id/credence/internal/identity"
)

// maxKeys is far more than a ring ever holds; a document with more of them was not written by Credence.
const maxKeys = 64

// Decode returns the ring of a document that Encode wrote, in this version or the first. private returns the PEM of
// a key by its ID, which is well formed (43 characters of base64url) and so can be part of a file name.
// Unknown, repeated and missing members, unknown values and trailing data are errors that name the field; so is everything
// that Validate refuses.
func Decode(data []byte, private func(identity.KeyID) ([]byte, error)) (Ring, error) {
	ring, err := decodeDocument(data)
	if err != nil {
		return Ring{}, err
	}
	for i := range ring.Keys {
		key := &ring.Keys[i]
		encoded, err := private(key.ID)
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: private key of %s: %w", i, key.ID, err)
		}
		key.Private, err = DecodePrivate(encoded)
		if err != nil {
			return Ring{}, fmt.Errorf("keys[%d]: private key of %s: %w", i, key.ID, err)
		}
	}
	if err := ring.Validate(); err != nil {
		return Ring{}, err
	}
	return ring, nil
}

// decodeDocument returns the ring of a document, but for the private keys.
func decodeDocument(data []byte) (Ring, error) {
	top, err := decodeObject("", data, "version", "keys", "compromised", "requests", "history", "resumed")
	if err != nil {
		return Ring{}, err
	}
	var version int
	if err := top.decode("version", &version); err != nil {
		return Ring{}, err
	}
	if version < firstVersion || version > documentVersion {
		return Ring{}, fmt.Errorf("version: %d is unknown, this program reads versions %d to %d", version, firstVersion, documentVersion)
	}
	if err := top.onlyFrom(documentVersion, version, "compromised", "requests", "history", "resumed"); err != nil {
		return Ring{}, err
	}
	if !top.has("keys") {
		return Ring{}, fmt.Errorf("%s: missing", top.field("keys"))
	}
	var ring Ring
	ring.Keys, err = decodeEach(top, "keys", maxKeys, func(path string, data []byte) (Key, error) { return decodeKey(path, data, version) })
	if err != nil {
		return Ring{}, err
	}
	if ring.Compromised, err = decodeEach(top, "compromised", maxCompromised, decodeCompromised); err != nil {
		return Ring{}, err
	}
	if ring.Requests, err = decodeEach(top, "requests", len(Algorithms()), decodeRequest); err != nil {
		return Ring{}, err
	}
	if ring.History, err = decodeEach(top, "history", MaxHistory, decodeEvent); err != nil {
		return Ring{}, err
	}
	if top.has("resumed") {
		resumed, err := decodeResuming("resumed", top.members["resumed"])
		if err != nil {
			return Ring{}, err
		}
		ring.Resumed = &resumed
	}
	return ring, nil
}

// decodeEach decodes the entries of a list; nil if it is absent.
func decodeEach[T any](top object, name string, most int, decode func(path string, data []byte) (T, error)) ([]T, error) {
	if !top.has(name) {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := top.decode(name, &entries); err != nil {
		return nil, err
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%s: %d entries, at most %d are read", name, len(entries), most)
	}
	var all []T
	for i, entry := range entries {
		one, err := decode(fmt.Sprintf("%s[%d]", name, i), entry)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func decodeKey(path string, data []byte, version int) (Key, error) {
	entry, err := decodeObject(path, data, "kid", "algorithm", "state", "publishedAt", "activatedAt",
		"retiredAt", "lastExpiry", "maxLifetimeSeconds", "stalenessSeconds")
	if err != nil {
		return Key{}, err
	}
	if err := entry.onlyFrom(documentVersion, version, "retiredAt", "lastExpiry", "maxLifetimeSeconds", "stalenessSeconds"); err != nil {
		return Key{}, err
	}
	var key Key
	if key.ID, err = entry.kid(); err != nil {
		return Key{}, err
	}
	if err := entry.decode("algorithm", &key.Algorithm); err != nil {
		return Key{}, err
	}
	if err := entry.decode("state", &key.State); err != nil {
		return Key{}, err
	}
	// Only a spare of the second version may not have been found published yet.
	published := entry.time
	if version > firstVersion && key.State == Spare {
		published = entry.optionalTime
	}
	if key.PublishedAt, err = published("publishedAt"); err != nil {
		return Key{}, err
	}
	if key.ActivatedAt, err = entry.optionalTime("activatedAt"); err != nil {
		return Key{}, err
	}
	if key.RetiredAt, err = entry.optionalTime("retiredAt"); err != nil {
		return Key{}, err
	}
	if key.LastExpiry, err = entry.optionalTime("lastExpiry"); err != nil {
		return Key{}, err
	}
	if key.Terms.MaxLifetime, err = entry.seconds("maxLifetimeSeconds"); err != nil {
		return Key{}, err
	}
	key.Terms.Staleness, err = entry.seconds("stalenessSeconds")
	return key, err
}

func decodeCompromised(path string, data []byte) (Compromised, error) {
	entry, err := decodeObject(path, data, "kid", "algorithm", "revokedAt", "activatedAt", "lastExpiry", "by", "reason")
	if err != nil {
		return Compromised{}, err
	}
	var gone Compromised
	if gone.ID, err = entry.kid(); err != nil {
		return Compromised{}, err
	}
	if err := entry.decode("algorithm", &gone.Algorithm); err != nil {
		return Compromised{}, err
	}
	if gone.RevokedAt, err = entry.time("revokedAt"); err != nil {
		return Compromised{}, err
	}
	if gone.ActivatedAt, err = entry.optionalTime("activatedAt"); err != nil {
		return Compromised{}, err
	}
	if gone.LastExpiry, err = entry.optionalTime("lastExpiry"); err != nil {
		return Compromised{}, err
	}
	gone.Cause, err = entry.cause()
	return gone, err
}

func decodeResuming(path string, data []byte) (Resuming, error) {
	entry, err := decodeObject(path, data, "at", "by", "reason")
	if err != nil {
		return Resuming{}, err
	}
	var resumed Resuming
	if resumed.At, err = entry.time("at"); err != nil {
		return Resuming{}, err
	}
	resumed.Cause, err = entry.cause()
	return resumed, err
}

func decodeRequest(path string, data []byte) (Request, error) {
	entry, err := decodeObject(path, data, "algorithm", "at", "by", "reason")
	if err != nil {
		return Request{}, err
	}
	var request Request
	if err := entry.decode("algorithm", &request.Algorithm); err != nil {
		return Request{}, err
	}
	if request.At, err = entry.time("at"); err != nil {
		return Request{}, err
	}
	request.Cause, err = entry.cause()
	return request, err
}

func decodeEvent(path string, data []byte) (Event, error) {
	entry, err := decodeObject(path, data, "at", "kind", "algorithm", "kid", "acceptRefusals", "by", "reason")
	if err != nil {
		return Event{}, err
	}
	var event Event
	if event.At, err = entry.time("at"); err != nil {
		return Event{}, err
	}
	if err := entry.decode("kind", &event.Kind); err != nil {
		return Event{}, err
	}
	if err := entry.decode("algorithm", &event.Algorithm); err != nil {
		return Event{}, err
	}
	if event.Key, err = entry.kid(); err != nil {
		return Event{}, err
	}
	if entry.has("acceptRefusals") {
		if err := entry.decode("acceptRefusals", &event.AcceptRefusals); err != nil {
			return Event{}, err
		}
	}
	event.Cause, err = entry.cause()
	return event, err
}

func (o object) kid() (identity.KeyID, error) {
	var id identity.KeyID
	if err := o.decode("kid", &id); err != nil {
		return "", err
	}
	if !WellFormed(id) {
		return "", fmt.Errorf("%s: %.64q is not the base64url of a SHA-256 sum", o.field("kid"), id)
	}
	return id, nil
}

func (o object) cause() (Cause, error) {
	var cause Cause
	if err := o.decode("by", &cause.By); err != nil {
		return Cause{}, err
	}
	if !o.has("reason") {
		return cause, nil
	}
	err := o.decode("reason", &cause.Reason)
	return cause, err
}

// onlyFrom refuses members that a document of an earlier version does not have.
func (o object) onlyFrom(since, version int, names ...string) error {
	if version >= since {
		return nil
	}
	for _, name := range names {
		if o.has(name) {
			return o.malformed(fmt.Errorf("unknown field %q in version %d", name, version))
		}
	}
	return nil
}

// WellFormed reports whether an ID has the form of a kid; such a name can not leave the directory that it is looked up in.
func WellFormed(id identity.KeyID) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(string(id))
	return err == nil && len(sum) == sha256.Size && len(id) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}
