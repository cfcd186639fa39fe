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
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
)

var testEncoded = sync.OnceValue(func() Encoded {
	encoded, err := testRing().Encode()
	if err != nil {
		panic(err)
	}
	return encoded
})

func testPrivate(id identity.KeyID) ([]byte, error) {
	if data, ok := testEncoded().Private[id]; ok {
		return data, nil
	}
	return nil, errors.New("no such key")
}

// sameRing compares rings; private keys by their own Equal.
func sameRing(want, got Ring) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b crypto.Signer) bool {
		equal, ok := a.(interface{ Equal(crypto.PrivateKey) bool })
		return ok && equal.Equal(b)
	}))
}

func TestEncodeAndDecode(t *testing.T) {
	got, err := Decode(testEncoded().Document, testPrivate)
	if err != nil {
		t.Fatal(err)
	}
	if diff := sameRing(testRing(), got); diff != "" {
		t.Errorf("ring (-want +got):\n%s", diff)
	}
	again, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testEncoded(), again); diff != "" {
		t.Errorf("encoded again (-want +got):\n%s", diff)
	}
}

func TestDocument(t *testing.T) {
	k := testRing().Keys
	want := fmt.Sprintf(`{
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
	if diff := cmp.Diff(want, string(testEncoded().Document)); diff != "" {
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
	good := string(testEncoded().Document)
	replaced := func(old, new string) string {
		if !strings.Contains(good, old) {
			panic("the document has no " + old)
		}
		return strings.Replace(good, old, new, 1)
	}
	cases := []struct{ name, document, want string }{
		{"empty", "", "unexpected EOF"},
		{"cut off", good[:len(good)/2], "EOF"},
		{"not an object", "[]", "an object was expected"},
		{"trailing data", good + "{}", "after the end"},
		{"unknown field", replaced(`"version"`, `"Version"`), `unknown field "Version"`},
		{"field twice", replaced(`"version": 1,`, `"version": 1, "version": 1,`), "version: field appears twice"},
		{"no version", replaced(`"version": 1,`, ``), "version: missing"},
		{"other version", replaced(`"version": 1`, `"version": 2`), "version: 2 is unknown"},
		{"version of another type", replaced(`"version": 1`, `"version": "1"`), "version: "},
		{"no keys", `{"version": 1}`, "keys: missing"},
		{"null keys", `{"version": 1, "keys": null}`, "keys: null is not allowed"},
		{"many keys", `{"version": 1, "keys": [` + strings.Repeat("{},", 64) + `{}]}`, "keys: 65 entries"},
		{"deep", strings.Repeat(`{"keys":`, 100000), "keys: "},
		{"key that is a string", `{"version": 1, "keys": ["x"]}`, "keys[0]: an object was expected"},
		{"unknown field of a key", replaced(`"algorithm"`, `"alg"`), `keys[0]: unknown field "alg"`},
		{"private material", replaced(`"state"`, `"d": "AA", "state"`), `keys[0]: unknown field "d"`},
		{"field of a key twice", replaced(`"state": "active"`, `"state": "active", "state": "active"`), "keys[0].state: field appears twice"},
		{"field twice in other spelling", replaced(`"kid"`, `"KID": "x", "kid"`), `unknown field "KID"`},
		{"no kid", replaced(`"kid": "`+id+`",`, ``), "keys[0].kid: missing"},
		{"null kid", replaced(`"`+id+`"`, `null`), "keys[0].kid: null"},
		{"kid that is a path", replaced(id, `../../../../etc/passwd`), "keys[0].kid: "},
		{"kid with a line break", replaced(id, id[:42]+`\n`+id[42:]), "keys[0].kid: "},
		{"kid of no key", replaced(id, strings.Repeat("A", 43)), "no such key"},
		{"kid of another key", replaced(id, string(testRing().Keys[1].ID)), "keys[1].kid"},
		{"algorithm of another key", replaced("RS256", "ES256"), "keys[0].algorithm: "},
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

func TestDecodeAsksOnlyForWellFormedIDs(t *testing.T) {
	for _, id := range []string{"", ".", "../x", strings.Repeat("A", 42), strings.Repeat("A", 44), strings.Repeat("/", 43), strings.Repeat("A", 42) + "B"} {
		data := fmt.Sprintf(`{"version":1,"keys":[{"kid":%q,"algorithm":"RS256","state":"spare","publishedAt":"2026-03-01T12:00:00Z"}]}`, id)
		_, err := Decode([]byte(data), func(id identity.KeyID) ([]byte, error) {
			t.Errorf("asked for %q", id)
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
		data, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	encoded := func(kind string, data []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
	}
	agreement, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
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

// What is read is a valid ring, and is read again just so after it is written. $0 to $3 in the input stand for the IDs of
// the test ring: each fuzzing process has a ring of its own.
func FuzzDecode(f *testing.F) {
	toIDs := func(data []byte) []byte {
		for i, key := range testRing().Keys {
			data = bytes.ReplaceAll(data, fmt.Appendf(nil, "$%d", i), []byte(key.ID))
		}
		return data
	}
	good := testEncoded().Document
	for i, key := range testRing().Keys {
		good = bytes.ReplaceAll(good, []byte(key.ID), fmt.Appendf(nil, "$%d", i))
	}
	f.Add(good)
	f.Add(good[:100])
	f.Add([]byte(`{"version":1,"keys":[]}`))
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
		if err != nil {
			t.Fatalf("a ring that was read can not be written: %v", err)
		}
		again, err := Decode(encoded.Document, testPrivate)
		if err != nil {
			t.Fatalf("a ring that was written can not be read: %v", err)
		}
		if diff := sameRing(ring, again); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}

// What is read is a key of a kind that Credence signs with.
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
		if _, err := identity.NewPublicKey(private.Public()); err != nil {
			t.Errorf("accepted a key that can not be published: %v", err)
		}
	})
}
