package discovery

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

// The names of the documents wherever they are kept: files in a folder, keys in a ConfigMap.
const (
	ConfigurationKey = "openid-configuration.json"
	JWKSKey          = "jwks.json"
	// NextChangeKey is not a document: beside them, it has the time of their next change, in RFC 3339. Empty or absent: not known.
	NextChangeKey = "next-change"
	// RevokedKey is not a document either: it has the revoked keys, which must never be published again.
	RevokedKey = "revoked-keys.json"
)

// Documents are the two public documents of an issuer, as the bytes that are served. The value is immutable, and only New
// and Parse make one that is not zero.
type Documents struct {
	issuer        identity.Issuer
	configuration []byte
	jwks          []byte
	keys          []identity.PublicKey
}

// Issuer is the issuer of the documents.
func (d Documents) Issuer() identity.Issuer { return d.issuer }

// Configuration is the discovery document (OpenID Connect Discovery 1.0, section 3); the caller owns the copy.
func (d Documents) Configuration() []byte { return bytes.Clone(d.configuration) }

// JWKS is the key set (RFC 7517, section 5); the caller owns the copy.
func (d Documents) JWKS() []byte { return bytes.Clone(d.jwks) }

// JWKSETag is the strong validator of the key set (RFC 9110, section 8.8.3), with its quotes.
func (d Documents) JWKSETag() string { return etag(d.jwks) }

// KeyIDs are the published keys in the order of the key set; the caller owns the copy.
func (d Documents) KeyIDs() []identity.KeyID {
	var ids []identity.KeyID
	for _, key := range d.keys {
		ids = append(ids, key.ID)
	}
	return ids
}

// Algorithms are those of the published keys, by ID.
func (d Documents) Algorithms() map[identity.KeyID]identity.Algorithm {
	all := map[identity.KeyID]identity.Algorithm{}
	for _, key := range d.keys {
		all[key.ID] = key.Algorithm
	}
	return all
}

// PublicKeys are the published keys in the order of the key set; the caller owns the copy.
func (d Documents) PublicKeys() []identity.PublicKey { return slices.Clone(d.keys) }

// IsZero reports whether d holds no documents.
func (d Documents) IsZero() bool { return d.issuer == "" }

// Equal reports whether two documents are the same bytes of the same issuer.
func (d Documents) Equal(other Documents) bool {
	return d.issuer == other.issuer && bytes.Equal(d.configuration, other.configuration) && bytes.Equal(d.jwks, other.jwks)
}

// etag depends on nothing but the bytes, so that all replicas answer alike.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`
}

// configurationDocument has the members of OpenID Connect Discovery 1.0, section 3 that a relying party of an issuer
// without login reads.
type configurationDocument struct {
	Issuer        string   `json:"issuer"`
	JWKSURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// jwk has only members that every relying party accepts: Google refuses an uploaded key set with any other.
type jwk struct {
	Kty string `json:"kty"`
	Alg string `json:"alg"`
	Use string `json:"use"`
	Kid string `json:"kid"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
}

// New writes the documents of an issuer with these public keys, in the order given: equal input gives equal bytes. No
// key, or a key that Parse would refuse, is an error.
func New(issuer identity.Issuer, keys []identity.PublicKey) (Documents, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: make([]jwk, 0, len(keys))}
	var algorithms []string
	for _, key := range keys {
		published, err := newJWK(key)
		if err != nil {
			return Documents{}, fmt.Errorf("publish key %q: %w", key.ID, err)
		}
		set.Keys = append(set.Keys, published)
		algorithms = append(algorithms, published.Alg)
	}
	// It leaves & < > as they are: an issuer may have them, and some relying parties compare before they unescape.
	jwks, err := strictjson.Encode(set)
	if err != nil {
		return Documents{}, fmt.Errorf("encode key set: %w", err)
	}
	configuration, err := strictjson.Encode(configurationDocument{
		Issuer:        string(issuer),
		JWKSURI:       issuer.JWKSURL(),
		ResponseTypes: []string{"id_token"},
		SubjectTypes:  []string{"public"},
		Algorithms:    slices.Compact(slices.Sorted(slices.Values(algorithms))),
	})
	if err != nil {
		return Documents{}, fmt.Errorf("encode configuration: %w", err)
	}
	return Parse(issuer, configuration, jwks)
}

func newJWK(key identity.PublicKey) (jwk, error) {
	published := jwk{Alg: string(key.Algorithm), Use: "sig", Kid: string(key.ID)}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		published.Kty = "RSA"
		published.N = base64.RawURLEncoding.EncodeToString(public.N.Bytes())
		published.E = base64.RawURLEncoding.EncodeToString(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		if _, err := identity.AlgorithmOf(public); err != nil {
			return jwk{}, err
		}
		point, err := public.Bytes()
		if err != nil {
			return jwk{}, fmt.Errorf("encode public key: %w", err)
		}
		published.Kty, published.Crv = "EC", "P-256"
		published.X = base64.RawURLEncoding.EncodeToString(point[1 : 1+p256Bytes])
		published.Y = base64.RawURLEncoding.EncodeToString(point[1+p256Bytes:])
	default:
		_, err := identity.AlgorithmOf(key.Key)
		return jwk{}, err
	}
	return published, nil
}
