package externalsigner

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

const (
	// maxKeyIDLength is that of the external signer API, in bytes.
	maxKeyIDLength = 1024
	// maxAnnounced bounds the keys that a signer announces, with those that are not published.
	maxAnnounced = 64
	// maxKeySize is larger than any public key that is taken, in bytes of DER.
	maxKeySize = 4 << 10
	// maxRSABits is the largest RSA key that the published documents may hold.
	maxRSABits = 8192
	// longestHint bounds a refresh hint far from the end of time.Duration.
	longestHint = 366 * 24 * time.Hour
)

// Announcement is a signer's keys at one time, already checked.
type Announcement struct {
	// Published are the keys for relying parties: those that the signer signs with, will sign with, or has signed with.
	Published []AnnouncedKey
	// Excluded are keys that verify old tokens of the signer's own, and are neither published nor sign.
	Excluded []AnnouncedKey
	// DataTimestamp is when the signer read its keys where they are kept, in UTC.
	DataTimestamp time.Time
	// RefreshHint is how long the signer thinks that the announcement is good for: whole seconds, positive.
	RefreshHint time.Duration
}

// AnnouncedKey is a public key under the kid that the signer gave it, which need not be a hash of the key.
type AnnouncedKey struct {
	identity.PublicKey
	// SPKI is the key as PKIX, ASN.1 DER (RFC 5280, section 4.1.2.7): the one encoding of it.
	SPKI []byte
}

// published returns the key of a kid that is published, or an error with the reason why it is not.
func (a Announcement) published(id identity.KeyID) (AnnouncedKey, error) {
	is := func(key AnnouncedKey) bool { return key.ID == id }
	if i := slices.IndexFunc(a.Published, is); i >= 0 {
		return a.Published[i], nil
	}
	if slices.ContainsFunc(a.Excluded, is) {
		return AnnouncedKey{}, refuse(ReasonExcludedKey, "the signer signed with key %.64q, which it excludes from discovery: relying parties do not know it", id)
	}
	return AnnouncedKey{}, refuse(ReasonUnknownKey, "the signer signed with key %.64q, which it has not announced", id)
}

// parseAnnouncement checks an answer to FetchKeys. Errors are *Error.
func parseAnnouncement(response *externaljwt.FetchKeysResponse) (Announcement, error) {
	hint := response.GetRefreshHintSeconds()
	switch announced := len(response.GetKeys()); {
	case announced == 0:
		return Announcement{}, refuse(ReasonNoKeys, "the signer announces no keys")
	case announced > maxAnnounced:
		return Announcement{}, refuse(ReasonTooManyKeys, "the signer announces %d keys, at most %d are taken", announced, maxAnnounced)
	case hint <= 0:
		return Announcement{}, refuse(ReasonRefreshHint, "the signer's refresh hint is %d seconds, it must be positive", hint)
	}
	if err := response.GetDataTimestamp().CheckValid(); err != nil {
		return Announcement{}, &Error{Reason: ReasonDataTimestamp, Detail: "the signer's answer lacks the time at which it read its keys", Cause: err}
	}
	announcement := Announcement{
		DataTimestamp: response.GetDataTimestamp().AsTime(),
		RefreshHint:   time.Duration(min(hint, int64(longestHint/time.Second))) * time.Second,
	}
	seen := map[identity.KeyID]int{}
	for i, announced := range response.GetKeys() {
		key, err := parseKey(i, announced)
		if err != nil {
			return Announcement{}, err
		}
		if first, twice := seen[key.ID]; twice {
			return Announcement{}, refuse(ReasonDuplicateKeyID, "keys[%d] and keys[%d] of the signer have the same kid %.64q", first, i, key.ID)
		}
		seen[key.ID] = i
		if announced.GetExcludeFromOidcDiscovery() {
			announcement.Excluded = append(announcement.Excluded, key)
		} else {
			announcement.Published = append(announcement.Published, key)
		}
	}
	switch published := len(announcement.Published); {
	case published == 0:
		return Announcement{}, refuse(ReasonNoKeys, "the signer excludes each of its %d keys from discovery: nothing is left to publish", len(announcement.Excluded))
	case published > keys.MaxPublished:
		return Announcement{}, refuse(ReasonTooManyKeys, "the signer announces %d keys to publish, at most %d may be: some relying parties read no more", published, keys.MaxPublished)
	}
	return announcement, nil
}

// parseKey checks the key at a place of an announcement. It accepts only keys that the published documents may hold.
func parseKey(place int, announced *externaljwt.Key) (AnnouncedKey, error) {
	id := announced.GetKeyId()
	if !validKeyID(id) {
		return AnnouncedKey{}, refuse(ReasonKeyID, "keys[%d] of the signer has a kid of %d bytes: it must be 1 to %d characters of printable ASCII", place, len(id), maxKeyIDLength)
	}
	public, algorithm, err := parseSPKI(announced.GetKey())
	if err != nil {
		return AnnouncedKey{}, &Error{Reason: ReasonKey, Detail: refuse(ReasonKey, "keys[%d] of the signer, kid %.64q", place, id).Detail, Cause: err}
	}
	return AnnouncedKey{
		PublicKey: identity.PublicKey{ID: identity.KeyID(id), Algorithm: algorithm, Key: public},
		SPKI:      bytes.Clone(announced.GetKey()),
	}, nil
}

// validKeyID reports whether a kid may stand in the published documents.
func validKeyID(id string) bool {
	return id != "" && len(id) <= maxKeyIDLength && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' })
}

func parseSPKI(der []byte) (crypto.PublicKey, identity.Algorithm, error) {
	if len(der) > maxKeySize {
		return nil, "", refuse(ReasonKey, "%d bytes are too many for a public key, at most %d are read", len(der), maxKeySize)
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, "", refuse(ReasonKey, "not a public key as PKIX (DER)")
	}
	algorithm, err := identity.AlgorithmOf(public)
	if err != nil {
		return nil, "", err
	}
	if key, ok := public.(*rsa.PublicKey); ok {
		switch {
		case key.N.BitLen() > maxRSABits:
			return nil, "", refuse(ReasonKey, "RSA key has %d bits, at most %d are verified with by relying parties", key.N.BitLen(), maxRSABits)
		case key.N.Bit(0) == 0 || key.E < 3 || key.E%2 == 0:
			return nil, "", refuse(ReasonKey, "RSA modulus and exponent must be odd, and the exponent at least 3")
		}
	}
	// A second encoding of the same key would look like another key.
	if again, err := x509.MarshalPKIXPublicKey(public); err != nil || !bytes.Equal(again, der) {
		return nil, "", refuse(ReasonKey, "not the one DER encoding of its key")
	}
	return public, algorithm, nil
}
