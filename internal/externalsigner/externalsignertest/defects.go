package externalsignertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/identity"
)

// Defect is something that is wrong with a signer.
type Defect struct {
	Name   string
	Reason externalsigner.Reason
	// Plant gives a good signer the defect.
	Plant func(*State)
}

// KeyDefects are those of announcements: no such announcement may be taken.
func KeyDefects() []Defect {
	edit := func(name string, reason externalsigner.Reason, edit func(*externaljwt.FetchKeysResponse)) Defect {
		return Defect{name, reason, func(s *State) { s.EditKeys = edit }}
	}
	key := func(name string, reason externalsigner.Reason, edit func(*externaljwt.Key)) Defect {
		return Defect{name, reason, func(s *State) {
			s.EditKeys = func(r *externaljwt.FetchKeysResponse) { edit(r.GetKeys()[len(r.GetKeys())-1]) }
		}}
	}
	return []Defect{
		{"it answers with an error", externalsigner.ReasonRefused, func(s *State) { s.FailKeys = errors.New("the HSM is locked") }},
		{"it hangs", externalsigner.ReasonTimeout, func(s *State) { s.HangKeys = true }},
		{"no keys", externalsigner.ReasonNoKeys, func(s *State) { s.Keys = nil }},
		{"all keys excluded", externalsigner.ReasonNoKeys, func(s *State) {
			s.EditKeys = func(r *externaljwt.FetchKeysResponse) {
				for _, key := range r.GetKeys() {
					key.ExcludeFromOidcDiscovery = true
				}
			}
		}},
		edit("more keys than relying parties read", externalsigner.ReasonTooManyKeys, func(r *externaljwt.FetchKeysResponse) { repeat(r, 9, false) }),
		edit("more keys than can be kept", externalsigner.ReasonTooManyKeys, func(r *externaljwt.FetchKeysResponse) { repeat(r, 100, true) }),
		edit("a kid twice", externalsigner.ReasonDuplicateKeyID, func(r *externaljwt.FetchKeysResponse) { r.GetKeys()[1].KeyId = r.GetKeys()[0].GetKeyId() }),
		edit("a kid twice, once excluded", externalsigner.ReasonDuplicateKeyID, func(r *externaljwt.FetchKeysResponse) {
			r.GetKeys()[1].KeyId, r.GetKeys()[1].ExcludeFromOidcDiscovery = r.GetKeys()[0].GetKeyId(), true
		}),
		key("an empty kid", externalsigner.ReasonKeyID, func(k *externaljwt.Key) { k.KeyId = "" }),
		key("an oversized kid", externalsigner.ReasonKeyID, func(k *externaljwt.Key) { k.KeyId = strings.Repeat("k", 1025) }),
		key("a kid with a line break", externalsigner.ReasonKeyID, func(k *externaljwt.Key) { k.KeyId = "a\nb" }),
		key("an empty key", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = nil }),
		key("a garbage key", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = []byte("garbage") }),
		key("a key with data behind it", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = append(k.Key, 0) }),
		key("a key in another encoding", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = withMore(k.GetKey()) }),
		key("an oversized key", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = make([]byte, 1<<16) }),
		key("a short RSA key", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = shortRSA() }),
		key("a P-384 key", externalsigner.ReasonKey, func(k *externaljwt.Key) { k.Key = p384() }),
		{"no refresh hint", externalsigner.ReasonRefreshHint, func(s *State) { s.RefreshHint = 0 }},
		{"a negative refresh hint", externalsigner.ReasonRefreshHint, func(s *State) { s.RefreshHint = -5 }},
		edit("no time of the keys", externalsigner.ReasonDataTimestamp, func(r *externaljwt.FetchKeysResponse) { r.DataTimestamp = nil }),
		edit("an invalid time", externalsigner.ReasonDataTimestamp, func(r *externaljwt.FetchKeysResponse) {
			r.DataTimestamp = &timestamppb.Timestamp{Nanos: -1}
		}),
	}
}

// SignDefects are those of signatures: no such token may be handed out.
func SignDefects() []Defect {
	header := func(name string, reason externalsigner.Reason, member string, value any) Defect {
		return Defect{name, reason, func(s *State) {
			s.EditHeader = func(h map[string]any) {
				if h[member] = value; value == nil {
					delete(h, member)
				}
			}
		}}
	}
	raw := func(name string, reason externalsigner.Reason, header string) Defect {
		return Defect{name, reason, func(s *State) {
			s.EditSign = func(r *externaljwt.SignJWTResponse) { r.Header = header }
		}}
	}
	changed := func(name string, reason externalsigner.Reason, edit func(string) string) Defect {
		return Defect{name, reason, func(s *State) {
			s.EditSign = func(r *externaljwt.SignJWTResponse) { r.Signature = edit(r.GetSignature()) }
		}}
	}
	return []Defect{
		{"it answers with an error", externalsigner.ReasonRefused, func(s *State) { s.FailSign = errors.New("the HSM is locked") }},
		{"it hangs", externalsigner.ReasonTimeout, func(s *State) { s.HangSign = true }},
		header("alg none", externalsigner.ReasonUnknownAlgorithm, "alg", "none"),
		header("an unknown algorithm", externalsigner.ReasonUnknownAlgorithm, "alg", "EdDSA"),
		header("an unsupported algorithm", externalsigner.ReasonUnknownAlgorithm, "alg", "ES384"),
		header("no algorithm", externalsigner.ReasonUnknownAlgorithm, "alg", nil),
		header("the algorithm of another key", externalsigner.ReasonAlgorithmOfOtherKey, "alg", "RS256"),
		header("no typ", externalsigner.ReasonType, "typ", nil),
		header("a wrong typ", externalsigner.ReasonType, "typ", "at+jwt"),
		header("a typ in other letters", externalsigner.ReasonType, "typ", "jwt"),
		header("a typ that is not a string", externalsigner.ReasonHeader, "typ", 1),
		header("no kid", externalsigner.ReasonKeyID, "kid", nil),
		header("an empty kid", externalsigner.ReasonKeyID, "kid", ""),
		header("an oversized kid", externalsigner.ReasonKeyID, "kid", strings.Repeat("k", 1025)),
		header("an unknown kid", externalsigner.ReasonUnknownKey, "kid", "signer/other"),
		header("a critical member", externalsigner.ReasonHeader, "crit", []string{"exp"}),
		header("a key in the header", externalsigner.ReasonHeader, "jwk", map[string]any{"kty": "EC"}),
		header("a member more", externalsigner.ReasonHeader, "jku", "https://example.com"),
		raw("an empty header", externalsigner.ReasonHeader, ""),
		raw("a garbage header", externalsigner.ReasonHeader, "%%%"),
		raw("a header that is not JSON", externalsigner.ReasonHeader, encode("garbage")),
		raw("a header that is an array", externalsigner.ReasonHeader, encode("[]")),
		raw("a header with padding", externalsigner.ReasonHeader, encode(`{"alg":"ES256","kid":"signer/es-1","typ":"JWT"}`)+"="),
		raw("a header with a member twice", externalsigner.ReasonHeader, encode(`{"alg":"none","alg":"ES256","kid":"signer/es-1","typ":"JWT"}`)),
		raw("a header with data behind it", externalsigner.ReasonHeader, encode(`{"alg":"ES256","kid":"signer/es-1","typ":"JWT"}{}`)),
		raw("a header that is cut off", externalsigner.ReasonHeader, encode(`{"alg":"ES256","kid":"signer/es-1","typ":"JWT"`)),
		raw("a header with ALG for alg", externalsigner.ReasonHeader, encode(`{"ALG":"ES256","kid":"signer/es-1","typ":"JWT"}`)),
		raw("an oversized header", externalsigner.ReasonHeader, encode(`{"alg":"ES256","kid":"signer/es-1","typ":"JWT"`+strings.Repeat(" ", 1<<14)+`}`)),
		changed("an empty signature", externalsigner.ReasonSignature, func(string) string { return "" }),
		changed("a garbage signature", externalsigner.ReasonSignature, func(string) string { return "%%%" }),
		changed("a short signature", externalsigner.ReasonSignature, func(s string) string { return s[4:] }),
		changed("a signature with a line break", externalsigner.ReasonSignature, func(s string) string { return s[:8] + "\n" + s[8:] }),
		changed("a signature of zeros", externalsigner.ReasonWrongSignature, func(s string) string { return strings.Repeat("A", len(s)) }),
		{"a signature by another key", externalsigner.ReasonWrongSignature, func(s *State) {
			other := NewKey(s.Keys[0].ID, identity.ES256)
			s.EditKeys = announceInstead(s.Keys[0])
			s.Keys = append([]Key{other}, s.Keys[1:]...)
		}},
		{"an RSA signature of other claims", externalsigner.ReasonWrongSignature, func(s *State) {
			s.Signing = 1
			private := s.Keys[1].Private
			s.EditSign = func(r *externaljwt.SignJWTResponse) {
				r.Signature, _ = signature(private, r.GetHeader()+"."+encode(`{"sub":"admin"}`))
			}
		}},
		{"an RSA signature that is short", externalsigner.ReasonSignature, func(s *State) {
			s.Signing = 1
			s.EditSign = func(r *externaljwt.SignJWTResponse) { r.Signature = r.GetSignature()[4:] }
		}},
		{"a signature of other claims", externalsigner.ReasonWrongSignature, func(s *State) {
			private := s.Keys[0].Private
			s.EditSign = func(r *externaljwt.SignJWTResponse) {
				r.Signature, _ = signature(private, r.GetHeader()+"."+encode(`{"sub":"admin"}`))
			}
		}},
	}
}

// announceInstead announces a key under its kid, whatever key signs.
func announceInstead(key Key) func(*externaljwt.FetchKeysResponse) {
	der := spki(key.Private.Public())
	return func(r *externaljwt.FetchKeysResponse) { r.GetKeys()[0].Key = der }
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func repeat(r *externaljwt.FetchKeysResponse, times int, excluded bool) {
	der := r.GetKeys()[0].GetKey()
	for i := range times {
		r.Keys = append(r.Keys, &externaljwt.Key{KeyId: fmt.Sprintf("more-%d", i), Key: der, ExcludeFromOidcDiscovery: excluded})
	}
}

// withMore is the same key for a lenient parser: a member more at the end of its sequence.
func withMore(der []byte) []byte {
	var info struct {
		Algorithm asn1.RawValue
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		panic(err)
	}
	der, err := asn1.Marshal(struct {
		Algorithm asn1.RawValue
		Key       asn1.BitString
		More      int
	}{info.Algorithm, info.Key, 1})
	if err != nil {
		panic(err)
	}
	return der
}

func shortRSA() []byte {
	// Keys that short can not be generated, but be read.
	return spki(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537})
}

func p384() []byte {
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return spki(&private.PublicKey)
}

func spki(public any) []byte {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	return der
}
