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
	top := decodeObject("", data, "version", "revision", "keys", "compromised", "requests", "history", "resumed")
	var version int
	top.decode("version", &version)
	if top.err == nil && (version < firstVersion || version > documentVersion) {
		top.err = fmt.Errorf("version: %d is unknown, this program reads versions %d to %d", version, firstVersion, documentVersion)
	}
	top.onlyInLast(version, "revision", "compromised", "requests", "history", "resumed")
	var revision int64
	top.optional("revision", &revision)
	if top.err == nil && !top.has("keys") {
		top.err = fmt.Errorf("%s: missing", top.field("keys"))
	}
	ring := Ring{
		Revision: revision,
		Keys: decodeEach(top, "keys", maxKeys, func(o *object) Key { return decodeKey(o, version) }, "kid", "algorithm", "state", "publishedAt",
			"activatedAt", "retiredAt", "lastExpiry", "maxLifetimeSeconds", "stalenessSeconds"),
		Compromised: decodeEach(top, "compromised", maxCompromised, decodeCompromised, "kid", "algorithm", "revokedAt", "activatedAt", "lastExpiry", "by", "reason"),
		Requests:    decodeEach(top, "requests", len(Algorithms()), decodeRequest, "algorithm", "at", "by", "reason"),
		History:     decodeEach(top, "history", MaxHistory, decodeEvent, "at", "kind", "algorithm", "kid", "acceptRefusals", "by", "reason"),
	}
	if top.err == nil && top.has("resumed") {
		o := decodeObject("resumed", top.members["resumed"], "at", "by", "reason")
		ring.Resumed = &Resuming{At: o.time("at"), Cause: o.cause()}
		top.err = o.err
	}
	return ring, top.err
}

// decodeEach decodes the entries of a list, objects with the known members; nil if it is absent.
func decodeEach[T any](top *object, name string, most int, decode func(*object) T, known ...string) (all []T) {
	var entries []json.RawMessage
	top.optional(name, &entries)
	if top.err == nil && len(entries) > most {
		top.err = fmt.Errorf("%s: %d entries, at most %d are read", name, len(entries), most)
	}
	for i := 0; i < len(entries) && top.err == nil; i++ {
		o := decodeObject(fmt.Sprintf("%s[%d]", name, i), entries[i], known...)
		all = append(all, decode(o))
		top.err = o.err
	}
	return all
}

func decodeKey(o *object, version int) Key {
	o.onlyInLast(version, "retiredAt", "lastExpiry", "maxLifetimeSeconds", "stalenessSeconds")
	key := Key{ID: o.kid()}
	o.decode("algorithm", &key.Algorithm)
	o.decode("state", &key.State)
	// Only a spare of the second version may not have been found published yet.
	published := o.time
	if version > firstVersion && key.State == Spare {
		published = o.optionalTime
	}
	key.PublishedAt, key.ActivatedAt = published("publishedAt"), o.optionalTime("activatedAt")
	key.RetiredAt, key.LastExpiry = o.optionalTime("retiredAt"), o.optionalTime("lastExpiry")
	key.Terms = Terms{MaxLifetime: o.seconds("maxLifetimeSeconds"), Staleness: o.seconds("stalenessSeconds")}
	return key
}

func decodeCompromised(o *object) Compromised {
	gone := Compromised{ID: o.kid()}
	o.decode("algorithm", &gone.Algorithm)
	gone.RevokedAt, gone.ActivatedAt, gone.LastExpiry = o.time("revokedAt"), o.optionalTime("activatedAt"), o.optionalTime("lastExpiry")
	gone.Cause = o.cause()
	return gone
}

func decodeRequest(o *object) (request Request) {
	o.decode("algorithm", &request.Algorithm)
	request.At, request.Cause = o.time("at"), o.cause()
	return request
}

func decodeEvent(o *object) Event {
	event := Event{At: o.time("at")}
	o.decode("kind", &event.Kind)
	o.decode("algorithm", &event.Algorithm)
	event.Key = o.kid()
	o.optional("acceptRefusals", &event.AcceptRefusals)
	event.Cause = o.cause()
	return event
}

func (o *object) kid() (id identity.KeyID) {
	o.decode("kid", &id)
	if o.err == nil && !WellFormed(id) {
		o.err = fmt.Errorf("%s: %.64q is not the base64url of a SHA-256 sum", o.field("kid"), id)
	}
	return id
}

func (o *object) cause() (cause Cause) {
	o.decode("by", &cause.By)
	o.optional("reason", &cause.Reason)
	return cause
}

// onlyInLast refuses members that a document of an earlier version than the last does not have.
func (o *object) onlyInLast(version int, names ...string) {
	for _, name := range names {
		if o.err == nil && version < documentVersion && o.has(name) {
			o.err = o.malformed(fmt.Errorf("unknown field %q in version %d", name, version))
		}
	}
}

// WellFormed reports whether an ID has the form of a kid; such a name can not leave the directory that it is looked up in.
func WellFormed(id identity.KeyID) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(string(id))
	return err == nil && len(sum) == sha256.Size && len(id) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}
