package service

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/strictjson"
)

// maxClaimsSize is many times what kube-apiserver puts into a token, in bytes as encoded.
const maxClaimsSize = 64 << 10

// claims are those that decide on whether a token is signed (RFC 7519, section 4.1).
type claims struct {
	issuer           string
	issuedAt, expiry time.Time
}

// parseClaims reads the second segment of a token as every parser does: readers may keep the first of two equal claims, or the last.
func parseClaims(encoded string) (claims, error) {
	if len(encoded) > maxClaimsSize {
		return claims{}, fmt.Errorf("%d bytes are too many, at most %d are signed", len(encoded), maxClaimsSize)
	}
	// encoding/base64 skips line breaks.
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return claims{}, errors.New("not base64url without padding")
	}
	members, err := strictjson.Object(data)
	if err != nil {
		return claims{}, err
	}
	var read claims
	var ok bool
	if read.issuer, ok = strictjson.Text(members["iss"]); !ok {
		return claims{}, errors.New("iss is missing or not a string")
	}
	if read.issuedAt, err = numericDate(members, "iat"); err != nil {
		return claims{}, err
	}
	if read.expiry, err = numericDate(members, "exp"); err != nil {
		return claims{}, err
	}
	return read, nil
}

// numericDate reads a time in whole seconds since 1970, as kube-apiserver writes it.
func numericDate(members map[string]json.RawMessage, name string) (time.Time, error) {
	seconds, err := strconv.ParseInt(string(members[name]), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is missing or not a whole number of seconds", name)
	}
	return time.Unix(seconds, 0), nil
}
