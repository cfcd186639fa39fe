package relyingparty

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxTokenLength is the longest token that is looked at, in bytes. AWS and Alibaba take 20 000 characters at most, web
// servers 8 KiB to 32 KiB of headers; tokens of Credence have about 1 KiB.
const MaxTokenLength = 16 << 10

// Inspection has a token's own claims, unverified: anyone can write them.
type Inspection struct {
	// Algorithm is the alg header; KeyID the kid header, or "".
	Algorithm, KeyID string
	// Issuer, Subject and ID are the claims iss, sub and jti, or "".
	Issuer, Subject, ID string
	// Audience is the aud claim; a single string counts as a list of one (RFC 7519, section 4.1.3).
	Audience []string
	// IssuedAt, NotBefore and Expiry are the claims iat, nbf and exp in UTC, or zero.
	IssuedAt, NotBefore, Expiry time.Time
	// Header and Claims are the two JSON objects of the token, byte for byte.
	Header, Claims json.RawMessage

	extensions bool // the header has a crit member (RFC 7515, section 4.1.11)
}

// Inspect decodes the header and the claims of a token in JWS compact serialization (RFC 7515, section 7.1), and verifies
// nothing. It is strict: padding, characters outside base64url, duplicate members, and standard members of a wrong type
// are errors. No error contains the token.
func Inspect(token string) (Inspection, error) {
	if token == "" {
		return Inspection{}, errors.New("the token is empty")
	}
	if len(token) > MaxTokenLength {
		return Inspection{}, fmt.Errorf("the token is %d bytes long, at most %d are read", len(token), MaxTokenLength)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Inspection{}, fmt.Errorf("a signed token has 3 parts separated by dots, this one has %d", len(parts))
	}
	var inspection Inspection
	var err error
	if inspection.Header, err = decodePart(parts[0]); err != nil {
		return Inspection{}, fmt.Errorf("decode the header of the token: %w", err)
	}
	if inspection.Claims, err = decodePart(parts[1]); err != nil {
		return Inspection{}, fmt.Errorf("decode the claims of the token: %w", err)
	}
	if _, err = decodePart(parts[2]); err != nil {
		return Inspection{}, fmt.Errorf("decode the signature of the token: %w", err)
	}
	if err := inspection.readHeader(); err != nil {
		return Inspection{}, fmt.Errorf("read the header of the token: %w", err)
	}
	if err := inspection.readClaims(); err != nil {
		return Inspection{}, fmt.Errorf("read the claims of the token: %w", err)
	}
	return inspection, nil
}

func decodePart(part string) ([]byte, error) {
	// The decoder of the standard library skips line breaks; a token has none.
	if i := strings.IndexAny(part, "\r\n"); i >= 0 {
		return nil, fmt.Errorf("line break at position %d", i)
	}
	return base64.RawURLEncoding.Strict().DecodeString(part)
}

func (i *Inspection) readHeader() error {
	members, err := ParseObject(i.Header)
	if err != nil {
		return err
	}
	if i.Algorithm, err = requiredString(members, "alg"); err != nil {
		return err
	}
	if i.KeyID, _, err = stringMember(members, "kid"); err != nil {
		return err
	}
	_, i.extensions = members["crit"]
	return nil
}

func (i *Inspection) readClaims() error {
	members, err := ParseObject(i.Claims)
	if err != nil {
		return err
	}
	for name, value := range map[string]*string{"iss": &i.Issuer, "sub": &i.Subject, "jti": &i.ID} {
		if *value, _, err = stringMember(members, name); err != nil {
			return err
		}
	}
	for name, value := range map[string]*time.Time{"iat": &i.IssuedAt, "nbf": &i.NotBefore, "exp": &i.Expiry} {
		if *value, err = timeMember(members, name); err != nil {
			return err
		}
	}
	i.Audience, err = audienceMember(members)
	return err
}

func audienceMember(members map[string]json.RawMessage) ([]string, error) {
	if single, ok, err := stringMember(members, "aud"); ok && err == nil {
		return []string{single}, nil
	}
	audience, err := stringsMember(members, "aud")
	if err != nil {
		return nil, errors.New(`"aud" is neither a string nor an array of strings`)
	}
	return audience, nil
}

// maxUnixTime is the last second of the year 9999, beyond which a time has no RFC 3339 form.
const maxUnixTime = 253402300799

// timeMember returns a NumericDate (RFC 7519, section 2): seconds since 1970, with or without a fraction.
func timeMember(members map[string]json.RawMessage, name string) (time.Time, error) {
	raw, ok := members[name]
	if !ok {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a number", name)
	}
	if seconds < 0 || seconds > maxUnixTime {
		return time.Time{}, fmt.Errorf("%q is not a time between the years 1970 and 9999", name)
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)).UTC(), nil
}
