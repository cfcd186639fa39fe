package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

func mustEncode(ring Ring) Encoded {
	encoded, err := ring.Encode()
	if err != nil {
		panic(err)
	}
	return encoded
}

var (
	testEncoded = sync.OnceValue(func() Encoded { return mustEncode(testRing()) })
	fullEncoded = sync.OnceValue(func() Encoded { return mustEncode(fullRing()) })
)

// fullRing has whatever a ring can have: a rotation and a revocation of ES256 keys behind it, one of RS256 before it.
var fullRing = sync.OnceValue(func() Ring {
	must := func(change Change, err error) Ring {
		if err != nil {
			panic(err)
		}
		return change.Ring
	}
	cause := Cause{By: "operator@example.org", Reason: `monthly, "as ever" <&>`}
	v := View{Now: testRing().Keys[3].PublishedAt.Add(30 * time.Hour)}
	ring := must(testRing().Rotate(v, Command{Algorithm: identity.ES256, Cause: cause}))
	ring = must(ring.Step(v, NewPrivate))
	ring = must(ring.Step(v, NewPrivate))
	ring = must(ring.RotateNow(v, Command{Algorithm: identity.ES256, AcceptRefusals: true, Cause: cause}, NewPrivate))
	active, _ := ring.Signer(identity.ES256)
	ring = must(ring.Revoke(v, Command{Key: active.ID, Cause: cause}, NewPrivate))
	ring = must(ring.Rotate(v, Command{Algorithm: identity.RS256, Cause: Cause{By: "jane"}}))
	return ring
})

func testPrivate(id identity.KeyID) ([]byte, error) {
	for _, encoded := range []Encoded{testEncoded(), fullEncoded()} {
		if data, ok := encoded.Private[id]; ok {
			return data, nil
		}
	}
	return nil, errors.New("no such key")
}

// firstDocument is what the first version wrote of the test ring.
func firstDocument() string {
	k := testRing().Keys
	return fmt.Sprintf(`{
  "version": 1,
  "keys": [
    {
      "kid": "%s",
      "algorithm": "RS256",
      "state": "active",
      "publishedAt": "2026-03-01T12:00:00Z",
      "activatedAt": "2026-03-01T12:00:00Z"
    },
    {
      "kid": "%s",
      "algorithm": "RS256",
      "state": "spare",
      "publishedAt": "2026-03-01T12:00:00Z"
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "active",
      "publishedAt": "2026-03-01T12:00:00Z",
      "activatedAt": "2026-03-01T12:00:00Z"
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "spare",
      "publishedAt": "2026-03-01T12:00:00Z"
    }
  ]
}
`, k[0].ID, k[1].ID, k[2].ID, k[3].ID)
}

// sameRing compares rings; private keys by their own Equal.
func sameRing(want, got Ring) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b crypto.Signer) bool {
		equal, ok := a.(interface{ Equal(crypto.PrivateKey) bool })
		return ok && equal.Equal(b)
	}))
}

func TestEncodeAndDecode(t *testing.T) {
	for name, ring := range map[string]Ring{"bootstrapped": testRing(), "full": fullRing()} {
		t.Run(name, func(t *testing.T) {
			encoded := mustEncode(ring)
			got := testkit.Need(Decode(encoded.Document, testPrivate))(t)
			if diff := sameRing(ring, got); diff != "" {
				t.Errorf("ring (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(encoded, mustEncode(got)); diff != "" {
				t.Errorf("encoded again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeReadsTheFirstVersion(t *testing.T) {
	got := testkit.Need(Decode([]byte(firstDocument()), testPrivate))(t)
	want := edited(func(k []Key) []Key {
		for i := range k {
			k[i].Terms = Terms{}
		}
		return k
	})
	if diff := sameRing(want, got); diff != "" {
		t.Errorf("ring (-want +got):\n%s", diff)
	}
	testkit.Expect(t, testkit.Err(got.Encode()), "it can not be written again")
}

func TestDocument(t *testing.T) {
	k := fullRing().Keys
	gone := fullRing().Compromised[0].ID
	at := "2026-03-02T18:00:00Z"
	cause := `"by": "operator@example.org",
      "reason": "monthly, \"as ever\" \u003c\u0026\u003e"`
	due := `"by": "controller",
      "reason": "there is always a spare"`
	event := func(kind string, algorithm identity.Algorithm, id identity.KeyID, more, cause string) string {
		return fmt.Sprintf(`{
      "at": "%s",
      "kind": "%s",
      "algorithm": "%s",
      "kid": "%s",%s
      %s
    }`, at, kind, algorithm, id, more, cause)
	}
	history := []string{
		event("requested", identity.ES256, k[2].ID, "", cause),
		event("retired", identity.ES256, k[2].ID, "", cause),
		event("activated", identity.ES256, k[3].ID, "", cause),
		event("published", identity.ES256, gone, "", due),
		event("retired", identity.ES256, k[3].ID, "", cause),
		event("activated", identity.ES256, gone, "\n      \"acceptRefusals\": true,", cause),
		event("published", identity.ES256, k[4].ID, "", due),
		event("revoked", identity.ES256, gone, "", cause),
		event("published", identity.ES256, k[5].ID, "", due),
		event("requested", identity.RS256, k[0].ID, "", `"by": "jane"`),
	}
	want := fmt.Sprintf(`{
  "version": 2,
  "revision": 7,
  "keys": [
    {
      "kid": "%s",
      "algorithm": "RS256",
      "state": "active",
      "publishedAt": "2026-03-01T12:00:00Z",
      "activatedAt": "2026-03-01T12:00:00Z",
      "maxLifetimeSeconds": 172800,
      "stalenessSeconds": 60
    },
    {
      "kid": "%s",
      "algorithm": "RS256",
      "state": "spare",
      "publishedAt": "2026-03-01T12:00:00Z"
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "retiring",
      "publishedAt": "2026-03-01T12:00:00Z",
      "activatedAt": "2026-03-01T12:00:00Z",
      "retiredAt": "2026-03-02T18:00:00Z",
      "lastExpiry": "2026-03-04T22:01:00Z",
      "maxLifetimeSeconds": 172800,
      "stalenessSeconds": 60
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "retiring",
      "publishedAt": "2026-03-01T12:00:00Z",
      "activatedAt": "2026-03-02T18:00:00Z",
      "retiredAt": "2026-03-02T18:00:00Z",
      "maxLifetimeSeconds": 172800,
      "stalenessSeconds": 60
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "spare"
    },
    {
      "kid": "%s",
      "algorithm": "ES256",
      "state": "spare"
    }
  ],
  "compromised": [
    {
      "kid": "%s",
      "algorithm": "ES256",
      "revokedAt": "2026-03-02T18:00:00Z",
      "activatedAt": "2026-03-02T18:00:00Z",
      "lastExpiry": "2026-03-04T22:01:00Z",
      %s
    }
  ],
  "requests": [
    {
      "algorithm": "RS256",
      "at": "2026-03-02T18:00:00Z",
      "by": "jane"
    }
  ],
  "history": [
    %s
  ]
}
`, k[0].ID, k[1].ID, k[2].ID, k[3].ID, k[4].ID, k[5].ID, gone, cause, strings.Join(history, ",\n    "))
	if diff := cmp.Diff(want, string(fullEncoded().Document)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestEncodeRefusesWhatCouldNotBeRead(t *testing.T) {
	broken := edited(func(k []Key) []Key { k[1].State = "lost"; return k })
	if _, err := broken.Encode(); err == nil || !strings.Contains(err.Error(), "keys[1].state") {
		t.Errorf("error %v, want one that names keys[1].state", err)
	}
}

func TestDecodeNamesTheField(t *testing.T) {
	id := string(testRing().Keys[0].ID)
	good := firstDocument()
	in := func(document, old, new string) string {
		if !strings.Contains(document, old) {
			panic("the document has no " + old)
		}
		return strings.Replace(document, old, new, 1)
	}
	replaced := func(old, new string) string { return in(good, old, new) }
	full := string(fullEncoded().Document)
	second := func(old, new string) string { return in(full, old, new) }
	gone := string(fullRing().Compromised[0].ID)
	list := func(name, entry string, n int) string {
		return `{"version": 2, "keys": [], "` + name + `": [` + strings.Repeat(entry+",", n-1) + entry + `]}`
	}
	cases := []struct{ name, document, want string }{
		{"empty", "", "unexpected EOF"},
		{"cut off", good[:len(good)/2], "EOF"},
		{"not an object", "[]", "is not a JSON object"},
		{"trailing data", good + "{}", "after the end"},
		{"unknown field", replaced(`"version"`, `"Version"`), `unknown field "Version"`},
		{"field twice", replaced(`"version": 1,`, `"version": 1, "version": 1,`), `has the key "version" twice`},
		{"no version", replaced(`"version": 1,`, ``), "version: missing"},
		{"other version", replaced(`"version": 1`, `"version": 3`), "version: 3 is unknown"},
		{"version before the first", replaced(`"version": 1`, `"version": 0`), "version: 0 is unknown"},
		{"field of a later version", replaced(`"keys"`, `"history": [], "keys"`), `unknown field "history" in version 1`},
		{"field of a key of a later version", replaced(`"publishedAt"`, `"retiredAt": "2026-03-01T12:00:00Z", "publishedAt"`), `keys[0]: unknown field "retiredAt" in version 1`},
		{"spare that was not published, in version 1", replaced(`"state": "spare",
      "publishedAt": "2026-03-01T12:00:00Z"`, `"state": "spare"`), "keys[1].publishedAt: missing"},
		{"version of another type", replaced(`"version": 1`, `"version": "1"`), "version: "},
		{"no keys", `{"version": 1}`, "keys: missing"},
		{"null keys", `{"version": 1, "keys": null}`, "keys: null is not allowed"},
		{"many keys", `{"version": 1, "keys": [` + strings.Repeat("{},", 64) + `{}]}`, "keys: 65 entries"},
		{"deep", strings.Repeat(`{"keys":`, 100000), "nested more than 32 levels"},
		{"key that is a string", `{"version": 1, "keys": ["x"]}`, "keys[0]: is not a JSON object"},
		{"unknown field of a key", replaced(`"algorithm"`, `"alg"`), `keys[0]: unknown field "alg"`},
		{"private material", replaced(`"state"`, `"d": "AA", "state"`), `keys[0]: unknown field "d"`},
		{"field of a key twice", replaced(`"state": "active"`, `"state": "active", "state": "active"`), `has the key "state" twice`},
		{"field twice in other spelling", replaced(`"kid"`, `"KID": "x", "kid"`), `unknown field "KID"`},
		{"no kid", replaced(`"kid": "`+id+`",`, ``), "keys[0].kid: missing"},
		{"null kid", replaced(`"`+id+`"`, `null`), "keys[0].kid: null"},
		{"kid that is a path", replaced(id, `../../../../etc/passwd`), "keys[0].kid: "},
		{"kid with a line break", replaced(id, id[:42]+`\n`+id[42:]), "keys[0].kid: "},
		{"kid of no key", replaced(id, strings.Repeat("A", 43)), "no such key"},
		{"kid of another key", replaced(id, string(testRing().Keys[1].ID)), "keys[1].kid"},
		{"algorithm of another key", replaced("RS256", "ES256"), "keys[0].algorithm: "},
		{"active that was not published", second(`"publishedAt": "2026-03-01T12:00:00Z",`, ``), "keys[0].publishedAt: missing"},
		{"lifetime that is text", second(`"maxLifetimeSeconds": 172800`, `"maxLifetimeSeconds": "48h"`), "keys[0].maxLifetimeSeconds: "},
		{"lifetime of no time", second(`"maxLifetimeSeconds": 172800`, `"maxLifetimeSeconds": 0`), "keys[0].maxLifetimeSeconds: 0 is not between"},
		{"lifetime of all time", second(`"maxLifetimeSeconds": 172800`, `"maxLifetimeSeconds": 9223372036854775807`), "keys[0].maxLifetimeSeconds: 9223372036854775807 is not between"},
		{"staleness below zero", second(`"stalenessSeconds": 60`, `"stalenessSeconds": -1`), "keys[0].stalenessSeconds: -1 is not between"},
		{"null compromised", second(`"compromised": [`, `"compromised": null, "x": [`), `unknown field "x"`},
		{"compromised that is an object", `{"version": 2, "keys": [], "compromised": {}}`, "compromised: "},
		{"many compromised", list("compromised", "{}", 1001), "compromised: 1001 entries"},
		{"many requests", list("requests", "{}", 3), "requests: 3 entries"},
		{"many events", list("history", "{}", 129), "history: 129 entries"},
		{"compromised of no name", list("compromised", "{}", 1), "compromised[0].kid: missing"},
		{"compromised that never was", second(`"revokedAt": "2026-03-02T18:00:00Z",`, ``), "compromised[0].revokedAt: missing"},
		{"compromised without a user", second(`"lastExpiry": "2026-03-04T22:01:00Z",
      "by": "operator@example.org",`, `"lastExpiry": "2026-03-04T22:01:00Z",`), "compromised[0].by: missing"},
		{"compromised and in use", in(full, `"compromised": [
    {
      "kid": "`+gone+`"`, `"compromised": [
    {
      "kid": "`+id+`"`), "compromised[0].kid: " + id + " was revoked, but is keys[0]"},
		{"request at no time", second(`"at": "2026-03-02T18:00:00Z",
      "by": "jane"`, `"by": "jane"`), "requests[0].at: missing"},
		{"request of an unknown algorithm", second(`"algorithm": "RS256",
      "at"`, `"algorithm": "none",
      "at"`), `requests[0].algorithm: "none" is unknown`},
		{"event of an unknown kind", second(`"kind": "retired"`, `"kind": "retried"`), `history[1].kind: "retried" is unknown`},
		{"event of a path", list("history", `{"at": "2026-03-02T18:00:00Z", "kind": "retired", "algorithm": "RS256", "kid": "../x", "by": "x"}`, 1), "history[0].kid: "},
		{"reason on two lines", second(`"reason": "monthly, `, `"reason": "monthly,\n`), "compromised[0].reason: must be at most 256 bytes of printable text"},
		{"long reason", second(`"reason": "monthly, `, `"reason": "`+strings.Repeat("m", 257)), "compromised[0].reason: must be"},
		{"state unknown", replaced(`"state": "spare"`, `"state": "retired"`), "keys[1].state: "},
		{"not a time", replaced(`"2026-03-01T12:00:00Z"`, `"yesterday"`), "keys[0].publishedAt: "},
		{"time that is a number", replaced(`"2026-03-01T12:00:00Z"`, `5`), "keys[0].publishedAt: "},
		{"time out of range", replaced(`"2026-03-01T12:00:00Z"`, `"0000-01-01T00:00:00+23:59"`), "keys[0].publishedAt: "},
		{"time far out of range", replaced(`"2026-03-01T12:00:00Z"`, `"9999-12-31T23:59:59-23:59"`), "keys[0].publishedAt: "},
		{"null time", replaced(`"activatedAt": "2026-03-01T12:00:00Z"`, `"activatedAt": null`), "keys[0].activatedAt: null"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.document), testPrivate)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %.300v, want one with %q", err, c.want)
			}
		})
	}
}

// A ring is read whatever bytes a person wrote into its texts: earlier versions read it, too.
func TestDecodeOfBytesThatAreNotUTF8(t *testing.T) {
	stored := bytes.Replace(fullEncoded().Document, []byte("monthly"), []byte("mon\xffthly"), 1)
	ring, err := Decode(stored, testPrivate)
	if err != nil || !strings.HasPrefix(ring.Compromised[0].Cause.Reason, "mon\ufffdthly") {
		t.Errorf("%v, %+v", err, ring.Compromised)
	}
}

func TestDecodeAsksOnlyForWellFormedIDs(t *testing.T) {
	for _, id := range []string{"", ".", "../x", strings.Repeat("A", 42), strings.Repeat("A", 44), strings.Repeat("/", 43), strings.Repeat("A", 42) + "B"} {
		data := fmt.Sprintf(`{"version":1,"keys":[{"kid":%q,"algorithm":"RS256","state":"spare","publishedAt":"2026-03-01T12:00:00Z"}]}`, id)
		_, err := Decode([]byte(data), func(id identity.KeyID) ([]byte, error) {
			t.Errorf("requested %q", id)
			return nil, errors.New("none")
		})
		if err == nil {
			t.Errorf("kid %q is accepted", id)
		}
	}
}

func TestDecodePrivate(t *testing.T) {
	good := testEncoded().Private[testRing().Keys[0].ID]
	der := func(key any) []byte {
		data := testkit.Need(x509.MarshalPKCS8PrivateKey(key))(t)
		return data
	}
	encoded := func(kind string, data []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
	}
	agreement := testkit.Need(ecdh.X25519().GenerateKey(rand.Reader))(t)
	pkcs1 := x509.MarshalPKCS1PrivateKey(testRing().Keys[0].Private.(*rsa.PrivateKey))
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"as written", good, ""},
		{"with an empty line at the end", append(bytes.Clone(good), "\n\r\n"...), ""},
		{"empty", nil, "not a PEM file"},
		{"DER", der(testRing().Keys[0].Private), "not a PEM file"},
		{"leading text", append([]byte("key:\n"), good...), "not a PEM file"},
		{"cut off", good[:len(good)/2], "damaged or cut off"},
		{"trailing text", append(bytes.Clone(good), "x"...), "data after the PEM block"},
		{"two keys", append(bytes.Clone(good), good...), "more than one PEM block"},
		{"a second key behind a damaged one", append([]byte("-----BEGIN PRIVATE KEY-----\n?\n"), good...), "more than one PEM block"},
		{"headers", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Headers: map[string]string{"a": "b"}, Bytes: der(testRing().Keys[0].Private)}), "headers"},
		{"PKCS #1", encoded("RSA PRIVATE KEY", pkcs1), "openssl pkcs8"},
		{"PKCS #1 under the wrong name", encoded("PRIVATE KEY", pkcs1), "parse PKCS #8"},
		{"oversized", bytes.Repeat([]byte("A"), 16<<10+1), "at most 16384"},
		{"Ed25519", encoded("PRIVATE KEY", der(newEd25519())), "ed25519.PublicKey is not supported"},
		{"X25519", encoded("PRIVATE KEY", der(agreement)), "can not sign"},
		{"RSA of 1024 bits", encoded("PRIVATE KEY", der(newShortRSA())), "1024 bits"},
		{"P-224", encoded("PRIVATE KEY", der(newKeyOn(elliptic.P224()))), "P-224"},
		{"P-384", encoded("PRIVATE KEY", der(newKeyOn(elliptic.P384()))), "P-384"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodePrivate(c.data)
			if c.want == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A decoded document is a valid ring, and is decoded to the same after encoding. $0 to $7 in the input stand for the IDs of
// the test rings: each fuzzing process has rings of its own.
func FuzzDecode(f *testing.F) {
	ids := func() []identity.KeyID {
		var ids []identity.KeyID
		for _, key := range slices.Concat(testRing().Keys, fullRing().Keys) {
			if !slices.Contains(ids, key.ID) {
				ids = append(ids, key.ID)
			}
		}
		return append(ids, fullRing().Compromised[0].ID)
	}()
	toIDs := func(data []byte) []byte {
		for i, id := range ids {
			data = bytes.ReplaceAll(data, fmt.Appendf(nil, "$%d", i), []byte(id))
		}
		return data
	}
	fromIDs := func(data []byte) []byte {
		for i, id := range ids {
			data = bytes.ReplaceAll(data, []byte(id), fmt.Appendf(nil, "$%d", i))
		}
		return data
	}
	good := fromIDs([]byte(firstDocument()))
	full := fromIDs(fullEncoded().Document)
	f.Add(good)
	f.Add(good[:100])
	f.Add(full)
	f.Add(full[:len(full)/2])
	f.Add(fromIDs(testEncoded().Document))
	f.Add(bytes.ReplaceAll(full, []byte(`"by"`), []byte(`"reason"`)))
	f.Add([]byte(`{"version":1,"keys":[]}`))
	f.Add([]byte(`{"version":2,"keys":[],"compromised":[],"requests":[],"history":[{}]}`))
	f.Add([]byte(`{"version":1,"version":1}`))
	f.Add(bytes.ReplaceAll(good, []byte(`"kid"`), []byte(`"KID"`)))
	f.Add(bytes.ReplaceAll(good, []byte("$1"), []byte("$0")))
	f.Add([]byte(`{"version":1,"keys":[{"kid":"../x","algorithm":"none"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ring, err := Decode(toIDs(data), testPrivate)
		if err != nil {
			return
		}
		encoded, err := ring.Encode()
		testkit.Must(t, err, "a ring that was read can not be written")
		again, err := Decode(encoded.Document, testPrivate)
		testkit.Must(t, err, "a ring that was written can not be read")
		if diff := sameRing(ring, again); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}

// A decoded key is of a kind that Credence signs with.
func FuzzDecodePrivate(f *testing.F) {
	for _, data := range testEncoded().Private {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		private, err := DecodePrivate(data)
		if err != nil {
			return
		}
		testkit.Expect(t, testkit.Err(identity.NewPublicKey(private.Public())), "accepted a key that can not be published")
	})
}
