package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"math/big"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/targets"
)

// refusing returns the names of the clouds that refuse an algorithm.
func refusing(algorithm string) []string {
	var names []string
	for _, cloud := range targets.Parties() {
		if !slices.Contains(cloud.Algorithms, algorithm) {
			names = append(names, cloud.Name)
		}
	}
	return names
}

// curves are the elliptic curves of RFC 7518, section 6.2 and the one algorithm of each.
var curves = map[string]struct {
	curve     elliptic.Curve
	algorithm string
}{
	"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"},
}

// fitting lists the algorithms that the type of the key allows, the most usual first.
func (k publishedKey) fitting() []string {
	switch {
	case k.kty == "RSA":
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case k.kty == "EC" && curves[k.curve].algorithm != "":
		return []string{curves[k.curve].algorithm}
	case k.kty == "OKP" && k.curve == "Ed25519":
		return []string{"EdDSA", "Ed25519"}
	}
	return nil
}

// algorithm is the one that the key is for; empty where it is unknown.
func (k publishedKey) algorithm() string {
	if fitting := k.fitting(); k.alg == "" && len(fitting) > 0 {
		return fitting[0]
	}
	return k.alg
}

func keySetAlgorithm(e *evidence, o *outcome) {
	usual := false
	for _, key := range e.keys {
		fitting, algorithm := key.fitting(), key.algorithm()
		usual = usual || algorithm == "RS256"
		switch {
		case fitting == nil:
			o.fail("unknown-type", "%s has the type %.40q and curve %.40q, which verifies no token: some relying parties refuse the whole set; publish RSA or P-256 keys", key.label, key.kty, key.curve)
		case !slices.Contains(fitting, algorithm):
			o.fail("mismatch", "%s is published for %.40q, its type is for %s: correct alg", key.label, algorithm, strings.Join(fitting, ", "))
		case key.alg == "":
			o.warn("missing", "%s has no alg: relying parties must guess: set RS256 or ES256", key.label)
		case algorithm != "RS256" && algorithm != "ES256":
			o.warn("unusual", "%s is for %s, which %s refuse: sign with RS256 (accepted everywhere) or ES256", key.label, algorithm, strings.Join(refusing(algorithm), ", "))
		}
	}
	if !usual {
		o.warn("no-rs256", "no key is for RS256: %s accept no other algorithm", strings.Join(refusing("ES256"), " and "))
	}
	o.pass("RS256 or ES256")
}

// octetsOf lists the members that hold octets, by the type of the key.
var octetsOf = map[string][]string{"RSA": {"n", "e"}, "EC": {"x", "y"}, "OKP": {"x"}}

// octets decodes a member in base64url without padding (RFC 7518, section 2), in its one canonical spelling.
func (k publishedKey) octets(member string) ([]byte, error) {
	s, ok := strictjson.Text(k.members[member])
	switch {
	case !ok || s == "":
		return nil, errors.New("is missing or not a string")
	case strings.Contains(s, "="):
		return nil, errors.New("has padding (=)")
	case strings.ContainsAny(s, "+/"):
		return nil, errors.New("is base64 with + or /, not base64url with - and _")
	case strings.ContainsAny(s, "\r\n \t"):
		return nil, errors.New("has white space in it")
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("is not base64url")
	}
	return decoded, nil
}

func keySetEncoding(e *evidence, o *outcome) {
	for _, key := range e.keys {
		for _, member := range octetsOf[key.kty] {
			decoded, err := key.octets(member)
			switch curve := curves[key.curve].curve; {
			case err != nil:
				o.fail("base64url", "%s: %s %v; write it in base64url without padding (RFC 7518, section 6)", key.label, member, err)
			case key.kty == "RSA" && decoded[0] == 0:
				// RFC 7518, section 2: Base64urlUInt has as few octets as possible.
				o.fail("leading-zeros", "%s: %s starts with a zero byte: strict parsers refuse it; leave it out (RFC 7518, section 6.3.1)", key.label, member)
			case key.kty == "EC" && curve != nil && len(decoded) != (curve.Params().BitSize+7)/8:
				o.fail("coordinate-length", "%s: %s has %d bytes, it must have %d, with leading zeros (RFC 7518, section 6.2.1.2)", key.label, member, len(decoded), (curve.Params().BitSize+7)/8)
			}
		}
	}
	o.pass("base64url without padding")
}

func keySetMaterial(e *evidence, o *outcome) {
	for _, key := range e.keys {
		switch key.kty {
		case "RSA":
			rsaMaterial(key, o)
		case "EC":
			ecMaterial(key, o)
		}
	}
	o.pass("every key can be used")
}

func rsaMaterial(key publishedKey, o *outcome) {
	n, err := key.octets("n")
	if err == nil && (len(n) == 0 || n[len(n)-1]%2 == 0) {
		o.fail("modulus", "%s: n is an even number, which is not an RSA modulus", key.label)
	}
	e, err := key.octets("e")
	if err != nil {
		return // reported by jwks-encoding
	}
	exponent := new(big.Int).SetBytes(e)
	switch {
	case exponent.BitLen() > 31 || exponent.Bit(0) == 0 || exponent.Cmp(big.NewInt(3)) < 0:
		o.fail("exponent", "%s: e is not an odd number from 3 to 2^31-1: common libraries refuse the key", key.label)
	case exponent.Int64() != 65537:
		o.warn("exponent", "%s: e is %d, not the usual 65537: some libraries refuse the key", key.label, exponent.Int64())
	}
}

func ecMaterial(key publishedKey, o *outcome) {
	curve := curves[key.curve].curve
	x, errX := key.octets("x")
	y, errY := key.octets("y")
	if curve == nil || errX != nil || errY != nil {
		return // reported by jwks-algorithm and jwks-encoding
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x) != size || len(y) != size {
		return // reported by jwks-encoding
	}
	if _, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y)); err != nil {
		o.fail("not-on-curve", "%s: x and y are not a point of %s", key.label, key.curve)
	}
}

// The sizes of RSA keys, in bits: at least 2048 (RFC 7518, section 3.3); crypto libraries stop at 8192.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

func keySetSizes(e *evidence, o *outcome) {
	for _, key := range e.keys {
		n, err := key.octets("n")
		if key.kty != "RSA" || err != nil {
			continue
		}
		switch bits := new(big.Int).SetBytes(n).BitLen(); {
		case bits < minRSABits:
			o.fail("short", "%s has %d bits: clouds and libraries refuse RSA keys of less than %d", key.label, bits, minRSABits)
		case bits > maxRSABits:
			o.fail("long", "%s has %d bits: crypto libraries refuse more than %d", key.label, bits, maxRSABits)
		case bits != 2048 && bits != 3072 && bits != 4096:
			o.warn("odd-size", "%s has %d bits: use 2048, 3072 or 4096, as some key stores take nothing else", key.label, bits)
		}
	}
	o.pass("%d bits or more, where RSA", minRSABits)
}
