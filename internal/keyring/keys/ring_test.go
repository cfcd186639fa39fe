package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// now has a fraction of a second and a zone, so that tests see both go away.
func now() time.Time {
	return time.Date(2026, 3, 1, 13, 0, 0, 5e8, time.FixedZone("CET", 3600))
}

// testRing is generated once: RSA keys are slow to make.
var testRing = sync.OnceValue(func() Ring {
	ring, err := Bootstrap(NewPrivate, now())
	if err != nil {
		panic(err)
	}
	return ring
})

// edited returns the ring with its keys copied and changed.
func edited(change func(keys []Key) []Key) Ring {
	return Ring{Keys: change(slices.Clone(testRing().Keys))}
}

func TestBootstrapMakesActiveAndSpareOfEachAlgorithm(t *testing.T) {
	type shape struct {
		Algorithm              identity.Algorithm
		State                  State
		PublishedAt, ActivedAt time.Time
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := []shape{
		{identity.RS256, Active, at, at},
		{identity.RS256, Spare, at, time.Time{}},
		{identity.ES256, Active, at, at},
		{identity.ES256, Spare, at, time.Time{}},
	}
	var got []shape
	for _, key := range testRing().Keys {
		got = append(got, shape{key.Algorithm, key.State, key.PublishedAt, key.ActivatedAt})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ring (-want +got):\n%s", diff)
	}
	if bits := testRing().Keys[0].Private.Public().(*rsa.PublicKey).N.BitLen(); bits != 2048 {
		t.Errorf("RSA key has %d bits, want 2048", bits)
	}
}

func TestBootstrapPassesOnWhatGenerateSays(t *testing.T) {
	broken := errors.New("no entropy")
	_, err := Bootstrap(func(identity.Algorithm) (crypto.Signer, error) { return nil, broken }, now())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "active RS256") {
		t.Errorf("error %v, want one that wraps %v and names the key", err, broken)
	}

	same := testRing().Keys[0].Private
	_, err = Bootstrap(func(identity.Algorithm) (crypto.Signer, error) { return same, nil }, now())
	if err == nil {
		t.Error("a generator that gives one RSA key for everything made a ring")
	}
}

func TestNewPrivateRefusesOtherAlgorithms(t *testing.T) {
	if _, err := NewPrivate("EdDSA"); err == nil || !strings.Contains(err.Error(), "EdDSA") {
		t.Errorf("error %v, want one that names EdDSA", err)
	}
}

func TestValidate(t *testing.T) {
	withPrivate := func(i int, private crypto.Signer) Ring {
		return edited(func(k []Key) []Key {
			k[i].Private = private
			if id, err := identity.KeyIDOf(private.Public()); err == nil {
				k[i].ID = id
			}
			return k
		})
	}
	cases := []struct {
		name string
		ring Ring
		want string
	}{
		{"bootstrapped", testRing(), ""},
		{"another spare", edited(withSpare), ""},
		{"empty", Ring{}, "keys: 0 keys with algorithm RS256 and state active"},
		{"no active ES256", edited(func(k []Key) []Key { return slices.Delete(k, 2, 3) }), "keys: 0 keys with algorithm ES256 and state active"},
		{"no spare RS256", edited(func(k []Key) []Key { return slices.Delete(k, 1, 2) }), "keys: no key with algorithm RS256 and state spare"},
		{"two active", edited(func(k []Key) []Key { k[1].State, k[1].ActivatedAt = Active, now(); return k }), "keys: 2 keys with algorithm RS256 and state active"},
		{"the same key twice", edited(func(k []Key) []Key { return append(k, k[1]) }), "keys[4].kid: "},
		{"foreign kid", edited(func(k []Key) []Key { k[2].ID = k[3].ID; return k }), "keys[2].kid: "},
		{"wrong algorithm", edited(func(k []Key) []Key { k[3].Algorithm = identity.RS256; return k }), `keys[3].algorithm: "RS256"`},
		{"unknown state", edited(func(k []Key) []Key { k[0].State = "retired"; return k }), `keys[0].state: "retired"`},
		{"no publication", edited(func(k []Key) []Key { k[0].PublishedAt = time.Time{}; return k }), "keys[0].publishedAt: missing"},
		{"spare that signed", edited(func(k []Key) []Key { k[1].ActivatedAt = now(); return k }), "keys[1].activatedAt: set"},
		{"active since never", edited(func(k []Key) []Key { k[0].ActivatedAt = time.Time{}; return k }), "keys[0].activatedAt: missing"},
		{"used before it was published", edited(func(k []Key) []Key { k[0].ActivatedAt = k[0].PublishedAt.Add(-1); return k }), "keys[0].activatedAt: before"},
		{"retiring", retiring(func(*Key) {}), ""},
		{"retiring, not confirmed", retiring(func(k *Key) { k.LastExpiry = time.Time{} }), ""},
		{"retiring since never", retiring(func(k *Key) { k.RetiredAt = time.Time{} }), "keys[4].retiredAt: missing"},
		{"retired before it was active", retiring(func(k *Key) { k.RetiredAt = k.ActivatedAt.Add(-1) }), "keys[4].retiredAt: before activatedAt"},
		{"expired before it retired", retiring(func(k *Key) { k.LastExpiry = k.RetiredAt.Add(-1) }), "keys[4].lastExpiry: before retiredAt"},
		{"retiring and never active", retiring(func(k *Key) { k.ActivatedAt = time.Time{} }), "keys[4].activatedAt: missing"},
		{"active that retired", edited(func(k []Key) []Key { k[0].RetiredAt = now(); return k }), "keys[0].retiredAt: set"},
		{"active that is over", edited(func(k []Key) []Key { k[0].LastExpiry = now(); return k }), "keys[0].lastExpiry: set"},
		{"spare that may have signed", edited(func(k []Key) []Key { k[1].LastExpiry = now(); return k }), ""},
		{"spare that signs", edited(func(k []Key) []Key { k[1].Terms = k[0].Terms; return k }), "keys[1].maxLifetimeSeconds: "},
		{"spare, not confirmed", edited(func(k []Key) []Key { k[1].PublishedAt = time.Time{}; return k }), ""},
		{"parts of seconds", edited(func(k []Key) []Key { k[0].Terms.Staleness = 1; return k }), "keys[0].stalenessSeconds: "},
		{"lifetime below zero", edited(func(k []Key) []Key { k[0].Terms.MaxLifetime = -time.Second; return k }), "keys[0].maxLifetimeSeconds: "},
		{"too many of an algorithm", edited(func(k []Key) []Key { return withSpare(withSpare(withSpare(k))) }), "keys: 5 keys with algorithm ES256, at most 4"},
		{"no active key after a revocation", remembering(func(r *Ring) { r.Keys = slices.Delete(r.Keys, 2, 3) }), ""},
		{"no active key after the revocation of a spare", remembering(func(r *Ring) {
			r.Keys = slices.Delete(r.Keys, 2, 3)
			r.Compromised[0].ActivatedAt, r.Compromised[0].LastExpiry = time.Time{}, time.Time{}
		}), "keys: 0 keys with algorithm ES256"},
		{"revoked and in use", remembering(func(r *Ring) { r.Compromised[0].ID = r.Keys[1].ID }), "compromised[0].kid: "},
		{"revoked twice", remembering(func(r *Ring) { r.Compromised = append(r.Compromised, r.Compromised[0]) }), "compromised[1].kid: "},
		{"revoked with no algorithm", remembering(func(r *Ring) { r.Compromised[0].Algorithm = "" }), "compromised[0].algorithm: "},
		{"revoked with no name", remembering(func(r *Ring) { r.Compromised[0].ID = "x" }), "compromised[0].kid: "},
		{"revoked at no time", remembering(func(r *Ring) { r.Compromised[0].RevokedAt = time.Time{} }), "compromised[0].revokedAt: missing"},
		{"revoked without a user", remembering(func(r *Ring) { r.Compromised[0].By = "" }), "compromised[0].by: missing"},
		{"revoked and may have signed", remembering(func(r *Ring) { r.Compromised[0].ActivatedAt = time.Time{} }), ""},
		{"many revoked", remembering(func(r *Ring) { r.Compromised = make([]Compromised, 1001) }), "compromised: 1001 entries"},
		{"requested twice", remembering(func(r *Ring) { r.Requests = append(r.Requests, r.Requests[0]) }), "requests[1].algorithm: "},
		{"requested without a time", remembering(func(r *Ring) { r.Requests[0].At = time.Time{} }), "requests[0].at: missing"},
		{"requested by a terminal", remembering(func(r *Ring) { r.Requests[0].By = "\x1b[2J" }), "requests[0].by: must be"},
		{"requested for no algorithm", remembering(func(r *Ring) { r.Requests[0].Algorithm = "x" }), "requests[0].algorithm: "},
		{"removed and in use", remembering(func(r *Ring) { r.History[0].Kind, r.History[0].Key = Removed, r.Keys[1].ID }), "keys[1].kid: "},
		{"much history", remembering(func(r *Ring) { r.History = make([]Event, 129) }), "history: 129 entries"},
		{"history of no time", remembering(func(r *Ring) { r.History[0].At = time.Time{} }), "history[0].at: missing"},
		{"history of no kind", remembering(func(r *Ring) { r.History[0].Kind = "" }), "history[0].kind: "},
		{"history of no algorithm", remembering(func(r *Ring) { r.History[0].Algorithm = "" }), "history[0].algorithm: "},
		{"history of no key", remembering(func(r *Ring) { r.History[0].Key = "" }), "history[0].kid: "},
		{"history of bytes", remembering(func(r *Ring) { r.History[0].Reason = "\xff" }), "history[0].reason: must be"},
		{"no private key", edited(func(k []Key) []Key { k[1].Private = nil; return k }), "has no private key"},
		{"Ed25519", withPrivate(2, newEd25519()), "keys[2]: private key of"},
		{"RSA of 1024 bits", withPrivate(0, newShortRSA()), "RSA key has 1024 bits"},
		{"P-224", withPrivate(3, newKeyOn(elliptic.P224())), "P-224 is not supported"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.ring.Validate()
			if c.want == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestPublishedHasOneOrder(t *testing.T) {
	want := testRing().Published()
	if len(want) != 4 || want[0].ID != testRing().Keys[0].ID {
		t.Fatalf("published %v, want four keys and the active RS256 key first", want)
	}
	reversed := edited(func(k []Key) []Key { slices.Reverse(k); return k })
	if diff := cmp.Diff(want, reversed.Published()); diff != "" {
		t.Errorf("the order of the ring shows (-want +got):\n%s", diff)
	}
	more := edited(withSpare)
	if diff := cmp.Diff(more.Published(), Ring{Keys: []Key{more.Keys[4], more.Keys[3], more.Keys[2], more.Keys[1], more.Keys[0]}}.Published()); diff != "" {
		t.Errorf("with two spares the order of the ring shows (-want +got):\n%s", diff)
	}
	for _, public := range want {
		if described, err := identity.NewPublicKey(public.Key); err != nil || described.ID != public.ID || described.Algorithm != public.Algorithm {
			t.Errorf("published %v, its key is %v, %v", public.ID, described, err)
		}
	}
}

func TestSignerIsTheActiveKey(t *testing.T) {
	for _, i := range []int{0, 2} {
		want := testRing().Keys[i]
		if got, ok := testRing().Signer(want.Algorithm); !ok || got.ID != want.ID {
			t.Errorf("%s is signed with %v, %v, want %v", want.Algorithm, got, ok, want)
		}
	}
	spares := edited(func(k []Key) []Key { k[0].State = Spare; return k })
	if key, ok := spares.Signer(identity.RS256); ok {
		t.Errorf("%v signs, but no key is active", key)
	}
}

func TestKeysNeverPrintTheirPrivatePart(t *testing.T) {
	ring := testRing()
	var text, structured bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "key", ring.Keys[0], "ring", ring)
	slog.New(slog.NewJSONHandler(&structured, nil)).Info("m", "key", ring.Keys[0], "ring", ring)
	asJSON := testkit.Need(json.Marshal(ring))(t)
	outputs := []string{
		fmt.Sprint(ring), fmt.Sprintf("%v", ring), fmt.Sprintf("%+v", ring), fmt.Sprintf("%#v", ring), fmt.Sprintf("%s %d %x", ring.Keys, ring.Keys, ring.Keys),
		fmt.Sprintf("%#v", struct{ hidden Ring }{ring}), text.String(), structured.String(), string(asJSON),
	}
	// A signer that is not a pointer would be printed with its content.
	byValue := edited(func(k []Key) []Key { k[0].Private = valueSigner{k[0].Private, "hunter2"}; return k })
	outputs = append(outputs, fmt.Sprintf("%+v", byValue), fmt.Sprintf("%#v", byValue), fmt.Sprint(byValue.Keys[0]))
	secret := ring.Keys[0].Private.(*rsa.PrivateKey).D
	for _, output := range outputs {
		for _, form := range []string{secret.String(), secret.Text(16), "Primes", "hunter2"} {
			if strings.Contains(output, form) {
				t.Errorf("a private key is printed: %.200s", output)
			}
		}
		if !strings.Contains(output, string(ring.Keys[0].ID)) {
			t.Errorf("the key ID is not printed: %.200s", output)
		}
	}
}

// retiring adds a third ES256 key, which retires.
func retiring(change func(*Key)) Ring {
	return edited(func(k []Key) []Key {
		k = withSpare(k)
		key := &k[len(k)-1]
		key.State, key.ActivatedAt, key.RetiredAt, key.LastExpiry = Retiring, key.PublishedAt, now(), now().Add(time.Hour)
		change(key)
		return k
	})
}

// remembering returns a ring that has revoked an ES256 key.
func remembering(change func(*Ring)) Ring {
	id := identity.KeyID(strings.Repeat("A", 43))
	cause := Cause{By: "operator", Reason: "lost"}
	ring := edited(func(k []Key) []Key { return k })
	ring.Compromised = []Compromised{{ID: id, Algorithm: identity.ES256, RevokedAt: now(), ActivatedAt: now(), LastExpiry: now(), Cause: cause}}
	ring.Requests = []Request{{Algorithm: identity.RS256, At: now(), Cause: cause}}
	ring.History = []Event{{At: now(), Kind: Revoked, Algorithm: identity.ES256, Key: id, Cause: cause}}
	change(&ring)
	return ring
}

type valueSigner struct {
	crypto.Signer
	Secret string
}

// withSpare adds another spare ES256 key.
func withSpare(k []Key) []Key {
	extra := k[3]
	extra.Private = newKeyOn(elliptic.P256())
	extra.ID, _ = identity.KeyIDOf(extra.Private.Public())
	return append(k, extra)
}

func newKeyOn(curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newEd25519() crypto.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newShortRSA() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return key
}
