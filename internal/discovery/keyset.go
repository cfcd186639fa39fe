package discovery

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

const (
	// maxKeys is how many keys of one set AWS and Microsoft Entra read.
	maxKeys = 100
	// maxKeyIDLength is what the Kubernetes external signer API allows for a kid, in bytes.
	maxKeyIDLength = 1024
	// maxRSABits is the largest RSA key that common TLS and JOSE libraries verify with.
	maxRSABits = 8192
	p256Bytes  = 32
)

var (
	// privateMembers are those of a JWK that RFC 7518, section 6 keeps secret.
	privateMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
	// publicMembers are those that every relying party accepts. Other members are refused too, even if they are not known to be private: one
	// may be the secret of an unknown key type.
	publicMembers = []string{"kty", "alg", "use", "kid", "n", "e", "x", "y", "crv"}
)

// IsPrivate reports whether a JWK member is one that RFC 7518, section 6 keeps secret.
func IsPrivate(member string) bool { return slices.Contains(privateMembers, member) }

func parseKeySet(data []byte) ([]identity.PublicKey, *Refusal) {
	set, refusal := parseObject(jwksName, data)
	if refusal != nil {
		return nil, refusal
	}
	for _, member := range slices.Sorted(maps.Keys(set)) {
		if member != "keys" {
			return nil, refuse(ReasonKeySet, jwksName, fmt.Sprintf("%.60q", member), "is not allowed, a key set has the member keys alone")
		}
	}
	var raw []json.RawMessage
	if json.Unmarshal(set["keys"], &raw) != nil || len(raw) == 0 {
		return nil, refuse(ReasonKeySet, jwksName, "keys", "must be an array with at least one key")
	}
	if len(raw) > maxKeys {
		return nil, refuse(ReasonKeySet, jwksName, "keys", "has %d keys, relying parties read at most %d", len(raw), maxKeys)
	}
	keys := make([]identity.PublicKey, 0, len(raw))
	for i, data := range raw {
		key, refusal := parseKey(fmt.Sprintf("keys[%d]", i), data)
		if refusal != nil {
			return nil, refusal
		}
		if first := slices.IndexFunc(keys, func(k identity.PublicKey) bool { return k.ID == key.ID }); first >= 0 {
			return nil, refuse(ReasonKeySet, jwksName, fmt.Sprintf("keys[%d].kid", i), "%q is the kid of keys[%d] already", key.ID, first)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseKey checks one JWK. Private members come first, so that a leaked key is called that whatever else is wrong.
func parseKey(path string, data []byte) (identity.PublicKey, *Refusal) {
	key, err := strictjson.Object(data)
	if err != nil {
		return identity.PublicKey{}, refuse(ReasonKey, jwksName, path, "is not a JSON object")
	}
	if refusal := checkMembers(path, key); refusal != nil {
		return identity.PublicKey{}, refusal
	}
	id, ok := strictjson.Text(key["kid"])
	if !ok || id == "" {
		return identity.PublicKey{}, refuse(ReasonKeySet, jwksName, path+".kid", "is missing, or is not a string with at least one character")
	}
	if len(id) > maxKeyIDLength || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
		return identity.PublicKey{}, refuse(ReasonKeySet, jwksName, path+".kid", "must be at most %d characters of printable ASCII", maxKeyIDLength)
	}
	public, member, err := publicKey(key)
	if err != nil {
		return identity.PublicKey{}, refuse(ReasonKey, jwksName, path+member, "%v (kid %q)", err, id)
	}
	fitting, err := identity.AlgorithmOf(public)
	if err != nil {
		return identity.PublicKey{}, refuse(ReasonKey, jwksName, path, "%v (kid %q)", err, id)
	}
	if algorithm, _ := strictjson.Text(key["alg"]); algorithm != string(fitting) {
		return identity.PublicKey{}, refuse(ReasonKey, jwksName, path+".alg", "must be %s for this key (kid %q)", fitting, id)
	}
	if use, _ := strictjson.Text(key["use"]); use != "sig" {
		return identity.PublicKey{}, refuse(ReasonKey, jwksName, path+".use", "must be sig (kid %q)", id)
	}
	return identity.PublicKey{ID: identity.KeyID(id), Algorithm: fitting, Key: public}, nil
}

func checkMembers(path string, key map[string]json.RawMessage) *Refusal {
	id, _ := strictjson.Text(key["kid"])
	names := slices.Sorted(maps.Keys(key))
	for _, name := range names {
		if IsPrivate(name) {
			return refuse(ReasonPrivate, jwksName, path+"."+name, "is a member of a private or secret key (kid %.1024q): publish public keys only, and treat this key as compromised", id)
		}
	}
	for _, name := range names {
		if !slices.Contains(publicMembers, name) {
			return refuse(ReasonKey, jwksName, path, "has the member %.60q (kid %.1024q), but some relying parties accept no more than kty, alg, use, kid, n, e, x, y and crv", name, id)
		}
	}
	return nil
}

// publicKey decodes the key itself (RFC 7518, section 6); member is the part of it that an error is about.
func publicKey(key map[string]json.RawMessage) (public crypto.PublicKey, member string, err error) {
	switch kty, _ := strictjson.Text(key["kty"]); kty {
	case "RSA":
		return rsaKey(key)
	case "EC":
		return ecKey(key)
	default:
		return nil, ".kty", fmt.Errorf("must be RSA or EC")
	}
}

func rsaKey(key map[string]json.RawMessage) (crypto.PublicKey, string, error) {
	for _, name := range []string{"crv", "x", "y"} {
		if _, present := key[name]; present {
			return nil, "." + name, fmt.Errorf("does not belong to an RSA key")
		}
	}
	n, ok := octets(key["n"])
	if !ok || n[0] == 0 {
		return nil, ".n", fmt.Errorf("must be the modulus in base64url without padding or leading zeros")
	}
	modulus := new(big.Int).SetBytes(n)
	if modulus.BitLen() > maxRSABits || modulus.Bit(0) == 0 {
		return nil, ".n", fmt.Errorf("must be an odd number of at most %d bits", maxRSABits)
	}
	e, ok := octets(key["e"])
	if !ok || e[0] == 0 || len(e) > 4 {
		return nil, ".e", fmt.Errorf("must be the exponent in base64url without padding or leading zeros, at most 4 bytes")
	}
	exponent := new(big.Int).SetBytes(e).Int64()
	if exponent < 3 || exponent%2 == 0 || exponent > 1<<31-1 {
		return nil, ".e", fmt.Errorf("must be an odd number from 3 to 2^31-1")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent)}, "", nil
}

func ecKey(key map[string]json.RawMessage) (crypto.PublicKey, string, error) {
	for _, name := range []string{"n", "e"} {
		if _, present := key[name]; present {
			return nil, "." + name, fmt.Errorf("does not belong to an EC key")
		}
	}
	if curve, _ := strictjson.Text(key["crv"]); curve != "P-256" {
		return nil, ".crv", fmt.Errorf("must be P-256")
	}
	point := []byte{4}
	for _, name := range []string{"x", "y"} {
		coordinate, ok := octets(key[name])
		if !ok || len(coordinate) != p256Bytes {
			return nil, "." + name, fmt.Errorf("must be a coordinate of %d bytes in base64url without padding", p256Bytes)
		}
		point = append(point, coordinate...)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, "", fmt.Errorf("x and y are not a point of P-256")
	}
	return public, "", nil
}

// octets decodes base64url without padding, in its one canonical spelling; an empty value is not ok.
func octets(raw json.RawMessage) ([]byte, bool) {
	s, ok := strictjson.Text(raw)
	if !ok || strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return decoded, err == nil && len(decoded) > 0
}
