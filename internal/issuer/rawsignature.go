package issuer

import (
	"errors"
)

const (
	// scalarSize is the length of r and of s on the curve P-256, in bytes.
	scalarSize = 32
	// rawSignatureSize is the length of an ES256 signature (RFC 7518, section 3.4).
	rawSignatureSize = 2 * scalarSize
)

var errNotDER = errors.New("the key gave a signature that is not the DER of two P-256 integers")

// RawSignature turns the DER of an ECDSA signature (SEQUENCE of INTEGER r and INTEGER s, RFC 3279, section 2.2.3), which
// is what a crypto.Signer gives, into r and s with a fixed length each, which is what a JWT carries.
func RawSignature(der []byte) ([]byte, error) {
	// Of two integers of at most 33 bytes even the whole is shorter than 128 bytes, so every length is one byte.
	if len(der) < 2 || der[0] != 0x30 || int(der[1]) != len(der)-2 {
		return nil, errNotDER
	}
	raw := make([]byte, rawSignatureSize)
	rest, ok := putInteger(raw[:scalarSize], der[2:])
	if !ok {
		return nil, errNotDER
	}
	rest, ok = putInteger(raw[scalarSize:], rest)
	if !ok || len(rest) != 0 {
		return nil, errNotDER
	}
	return raw, nil
}

// putInteger reads one positive INTEGER from the start of der into scalar, big-endian and padded with zeros, and returns
// the rest.
func putInteger(scalar, der []byte) (rest []byte, ok bool) {
	if len(der) < 2 || der[0] != 0x02 || int(der[1]) > len(der)-2 {
		return nil, false
	}
	value, rest := der[2:2+int(der[1])], der[2+int(der[1]):]
	if len(value) == 0 || value[0] >= 0x80 {
		return nil, false // empty or negative
	}
	if value[0] == 0 {
		value = value[1:]
		if len(value) == 0 || value[0] < 0x80 {
			return nil, false // zero, or padded without need
		}
	}
	if len(value) > len(scalar) {
		return nil, false
	}
	copy(scalar[len(scalar)-len(value):], value)
	return rest, true
}
