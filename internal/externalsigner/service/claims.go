package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxClaimsSize is many times what kube-apiserver puts into a token, in bytes as encoded.
const maxClaimsSize = 64 << 10

// claims are those that decide on whether a token is signed (RFC 7519, section 4.1).
type claims struct {
	issuer           string
	issuedAt, expiry time.Time
}

// parseClaims reads the second segment of a token as every parser does: an object in which no claim stands twice.
func parseClaims(encoded string) (claims, error) {
	if len(encoded) > maxClaimsSize {
		return claims{}, fmt.Errorf("%d bytes are too many, at most %d are signed", len(encoded), maxClaimsSize)
	}
	// encoding/base64 skips line breaks.
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return claims{}, errors.New("not base64url without padding")
	}
	members, err := parseObject(data)
	if err != nil {
		return claims{}, err
	}
	var read claims
	if raw := members["iss"]; len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &read.issuer) != nil {
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

// parseObject reads one JSON object whose names appear once. Of two equal names encoding/json keeps the last, and other readers
// may keep the first, which was not checked.
func parseObject(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("not a JSON object")
		}
		if _, twice := members[name]; twice {
			return nil, errors.New("a claim appears twice")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("not a JSON object")
		}
		members[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("not a complete JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON object")
	}
	return members, nil
}
