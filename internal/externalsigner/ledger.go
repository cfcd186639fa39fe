package externalsigner

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// maxWithdrawn bounds the withdrawn keys in a ledger. The oldest are dropped first; with a new key every month it holds ten
// years. It is more than maxAnnounced, so that all excluded keys fit.
const maxWithdrawn = 128

// Ledger is what is known of the keys of a signer: which are published, and since when. All replicas share one. It is a
// value that is replaced whole; the zero Ledger is that of an issuer that has never had a key.
type Ledger struct {
	// StartedAt is when the first keys were entered, in UTC. A ledger with StartedAt and without keys belongs to an issuer
	// whose relying parties know other keys: the first keys of its signer wait like any others.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// DataTimestamp is that of the announcement with these keys, in UTC. It keeps a replica whose signer is behind from
	// undoing a later announcement.
	DataTimestamp time.Time `json:"dataTimestamp,omitzero"`
	// Keys are those that are published, by kid.
	Keys []LedgerKey `json:"keys,omitempty"`
	// Withdrawn are keys that were published before, or that the signer excludes: their kids cannot be reused. The oldest
	// come first.
	Withdrawn []WithdrawnKey `json:"withdrawn,omitempty"`
}

// LedgerKey is a key that is published.
type LedgerKey struct {
	ID        identity.KeyID     `json:"kid"`
	Algorithm identity.Algorithm `json:"algorithm"`
	// SPKI is the key as PKIX, ASN.1 DER, so that every replica publishes the same without its signer, too.
	SPKI []byte `json:"spki"`
	// PublishedAt is since when the key is known to be in the stored ledger, in UTC; zero until the first Observe that
	// found it there. It is never before the key could be seen, however long the write that added it took.
	PublishedAt time.Time `json:"publishedAt,omitzero"`
	// First reports whether the key is one of the first of its issuer, which need not wait: no relying party can know others.
	First bool `json:"first,omitzero"`
}

// WithdrawnKey is a key that is not published.
type WithdrawnKey struct {
	ID identity.KeyID `json:"kid"`
	// SPKISHA256 is the base64url of the SHA-256 sum of the key as PKIX.
	SPKISHA256 string `json:"spkiSHA256"`
	// At is when that was first seen, in UTC.
	At time.Time `json:"at"`
}

// Observation is what an announcement makes of a ledger.
type Observation struct {
	Ledger Ledger
	// Changed reports whether the ledger has changed, and must be stored before it counts.
	Changed bool
	// Added and Withdrawn are the keys that came and went.
	Added, Withdrawn []identity.KeyID
	// Returned are those of the added keys that were withdrawn or excluded before.
	Returned []identity.KeyID
	// Outdated reports whether the announcement is older than the ledger, and was ignored.
	Outdated bool
}

// Observe enters an announcement. The ledger must be the one that was loaded from its store, and the view have been taken
// after that: that a key without PublishedAt is in it, and in the documents, shows that it is published since then at the
// latest. The result is to be saved only over the ledger that was loaded. An announcement that gives a kid to another key is
// refused whole, as is one from the future. Errors are *Error.
func (l Ledger) Observe(announced Announcement, v keys.View) (Observation, error) {
	if at := announced.DataTimestamp; at.After(v.Now.Add(2 * v.Settings.ClockSkew)) {
		return Observation{}, refuse(ReasonDataTimestamp, "the signer's time of reading its keys is %s, but it is %s", at.Format(time.RFC3339), v.Now.UTC().Format(time.RFC3339))
	}
	if err := l.checkBindings(announced); err != nil {
		return Observation{}, err
	}
	at := l.clock(v)
	confirmed, changed := l.confirm(at, v.Documents)
	next := confirmed.enter(announced, at)
	next.Changed = next.Changed || changed
	if len(next.Added)+len(next.Withdrawn) > 0 && announced.DataTimestamp.Before(l.DataTimestamp) {
		return Observation{Ledger: confirmed, Changed: changed, Outdated: true}, nil
	}
	return next, nil
}

// checkBindings returns an error for a kid that was another key's.
func (l Ledger) checkBindings(announced Announcement) error {
	for _, key := range slices.Concat(announced.Published, announced.Excluded) {
		if known, ok := l.binding(key.ID); ok && known != sum(key.SPKI) {
			return refuse(ReasonKeyChanged, "the signer announces another key under the kid %.64q than before: relying parties that know the first would refuse its tokens, and a kid must name one key for ever", key.ID)
		}
	}
	return nil
}

// binding is the hash of the key that a kid stands for.
func (l Ledger) binding(id identity.KeyID) (string, bool) {
	if key, ok := l.key(id); ok {
		return sum(key.SPKI), true
	}
	if i := slices.IndexFunc(l.Withdrawn, func(k WithdrawnKey) bool { return k.ID == id }); i >= 0 {
		return l.Withdrawn[i].SPKISHA256, true
	}
	return "", false
}

func (l Ledger) key(id identity.KeyID) (LedgerKey, bool) {
	if i := slices.IndexFunc(l.Keys, func(k LedgerKey) bool { return k.ID == id }); i >= 0 {
		return l.Keys[i], true
	}
	return LedgerKey{}, false
}

// clock is the time to record: now, or the latest time of the ledger if that is later, so that a clock that was set back
// makes no key look older than it is. A time beyond what any clock should have shown is ignored.
func (l Ledger) clock(v keys.View) time.Time {
	at, limit := v.Now, v.Now.Add(2*v.Settings.ClockSkew)
	for _, key := range l.Keys {
		if key.PublishedAt.After(at) {
			at = key.PublishedAt
		}
	}
	if at.After(limit) {
		at = limit
	}
	return keys.RoundUp(at)
}

// confirm records that keys were found in the stored ledger and, if the documents are watched, in the documents.
func (l Ledger) confirm(at time.Time, documents *keys.Gate) (Ledger, bool) {
	changed := false
	l.Keys = slices.Clone(l.Keys)
	for i, key := range l.Keys {
		if key.PublishedAt.IsZero() && (documents == nil || slices.Contains(documents.Knows, key.ID)) {
			l.Keys[i].PublishedAt, changed = at, true
		}
	}
	return l, changed
}

// enter makes the ledger one of the announced keys.
func (l Ledger) enter(announced Announcement, at time.Time) Observation {
	first := l.StartedAt.IsZero()
	next := Observation{Ledger: Ledger{StartedAt: l.StartedAt, DataTimestamp: l.DataTimestamp}, Changed: first}
	withdraw := func(id identity.KeyID, spki []byte) {
		next.Ledger.Withdrawn = append(next.Ledger.Withdrawn, WithdrawnKey{ID: id, SPKISHA256: sum(spki), At: at})
		next.Changed = true
	}
	for _, old := range l.Withdrawn {
		if !contains(announced.Published, old.ID) {
			next.Ledger.Withdrawn = append(next.Ledger.Withdrawn, old)
		}
	}
	for _, key := range announced.Published {
		known, ok := l.key(key.ID)
		if !ok {
			known = LedgerKey{ID: key.ID, Algorithm: key.Algorithm, SPKI: key.SPKI, First: first}
			next.Added = append(next.Added, key.ID)
			if _, known := l.binding(key.ID); known {
				next.Returned = append(next.Returned, key.ID)
			}
		}
		next.Ledger.Keys = append(next.Ledger.Keys, known)
	}
	slices.SortFunc(next.Ledger.Keys, func(a, b LedgerKey) int { return cmp.Compare(a.ID, b.ID) })
	for _, old := range l.Keys {
		if !contains(announced.Published, old.ID) {
			withdraw(old.ID, old.SPKI)
			next.Withdrawn = append(next.Withdrawn, old.ID)
		}
	}
	for _, key := range announced.Excluded {
		if _, known := next.Ledger.binding(key.ID); !known {
			withdraw(key.ID, key.SPKI)
		}
	}
	surplus := len(next.Ledger.Withdrawn) - maxWithdrawn
	next.Ledger.Withdrawn = slices.DeleteFunc(next.Ledger.Withdrawn, func(k WithdrawnKey) bool {
		// One that is excluded now would be entered again at once.
		forget := surplus > 0 && !contains(announced.Excluded, k.ID)
		if forget {
			surplus--
		}
		return forget
	})
	if first {
		next.Ledger.StartedAt = at
	}
	if next.Changed = next.Changed || len(next.Added)+len(next.Withdrawn) > 0; next.Changed {
		next.Ledger.DataTimestamp = announced.DataTimestamp
	}
	return next
}

func contains(list []AnnouncedKey, id identity.KeyID) bool {
	return slices.ContainsFunc(list, func(k AnnouncedKey) bool { return k.ID == id })
}

func sum(spki []byte) string {
	hash := sha256.Sum256(spki)
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

// MaySign returns nil if every relying party knows the kid, and otherwise an *Error: ReasonTooYoung, with the time from which
// they do, ReasonGates while a gate has not confirmed the key, or ReasonUnknownKey. The ledger must be the stored one, and the
// settings of the view must come from Settings.Complete.
func (l Ledger) MaySign(id identity.KeyID, v keys.View) error {
	key, ok := l.key(id)
	switch {
	case !ok:
		return refuse(ReasonUnknownKey, "key %.64q of the signer is not published", id)
	case key.First:
		return nil
	}
	ready := key.PublishedAt.Add(v.Settings.Wait())
	if key.PublishedAt.IsZero() {
		// It has not been found published yet: the earliest time is now.
		ready = keys.RoundUp(v.Now.Add(v.Settings.Wait()))
	}
	if v.Now.Before(ready) {
		tooYoung := refuse(ReasonTooYoung, "key %.64q of the signer may be unknown to relying parties until %s: it must be published for %s before it signs; have the signer announce keys earlier, or sign with an older one until then",
			id, ready.Format(time.RFC3339), v.Settings.Wait())
		tooYoung.ReadyAt = ready
		return tooYoung
	}
	for _, gate := range v.Gates {
		if !slices.Contains(gate.Knows, id) {
			return refuse(ReasonGates, "key %.64q of the signer has been published long enough, but was not seen to be known to %s", id, gate.Name)
		}
	}
	return nil
}

// Published returns the public keys that relying parties must know. The order depends only on the keys, so that all replicas
// publish the same bytes: RS256 before ES256, then by kid.
func (l Ledger) Published() []identity.PublicKey {
	published := make([]identity.PublicKey, 0, len(l.Keys))
	for _, key := range l.Keys {
		// Validate has refused a ledger with a key that can not be read.
		if public, algorithm, err := parseSPKI(key.SPKI); err == nil {
			published = append(published, identity.PublicKey{ID: key.ID, Algorithm: algorithm, Key: public})
		}
	}
	slices.SortFunc(published, func(a, b identity.PublicKey) int {
		return cmp.Or(
			cmp.Compare(slices.Index(keys.Algorithms(), a.Algorithm), slices.Index(keys.Algorithms(), b.Algorithm)),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return published
}
