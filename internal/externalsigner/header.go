package externalsigner

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/credence-id/credence/internal/identity"
)

// maxHeaderSize is in bytes as encoded: the longest kid, and space for another way to write it.
const maxHeaderSize = 8 << 10

// header is that of a JWT (RFC 7515, section 4.1), as far as the external signer API allows it.
type header struct {
	Algorithm identity.Algorithm
	KeyID     identity.KeyID
}

// parseHeader reads the first segment of a token. It has alg, kid and typ, each once, as strings, and nothing else. Errors
// are *Error.
func parseHeader(encoded string) (header, error) {
	if len(encoded) > maxHeaderSize {
		return header{}, refuse(ReasonHeader, "the signer's header has %d bytes, at most %d are read", len(encoded), maxHeaderSize)
	}
	data, err := decodeSegment(encoded)
	if err != nil {
		return header{}, refuse(ReasonHeader, "the signer's header is not base64url without padding")
	}
	members, err := stringMembers(data)
	if err != nil {
		return header{}, &Error{Reason: ReasonHeader, Detail: "the signer's header", Cause: err}
	}
	for name := range members {
		if name != "alg" && name != "kid" && name != "typ" {
			return header{}, refuse(ReasonHeader, "the signer's header has the member %.64q, only alg, kid and typ are allowed", name)
		}
	}
	kid, ok := members["kid"]
	switch {
	case members["typ"] != "JWT":
		return header{}, refuse(ReasonType, "the signer's header has typ %.64q, it must be JWT", members["typ"])
	case !ok || !validKeyID(kid):
		return header{}, refuse(ReasonKeyID, "the signer's header has a kid of %d bytes: it must be 1 to %d characters of printable ASCII", len(kid), maxKeyIDLength)
	}
	algorithm := identity.Algorithm(members["alg"])
	if algorithm != identity.RS256 && algorithm != identity.ES256 {
		return header{}, refuse(ReasonUnknownAlgorithm, "the signer's header has alg %.64q, it must be %s or %s", algorithm, identity.RS256, identity.ES256)
	}
	return header{Algorithm: algorithm, KeyID: identity.KeyID(kid)}, nil
}

// decodeSegment decodes base64url without padding, in its one spelling (RFC 7515, section 2).
func decodeSegment(encoded string) ([]byte, error) {
	// encoding/base64 skips line breaks.
	if strings.ContainsAny(encoded, "\r\n") {
		return nil, errors.New("line break")
	}
	return base64.RawURLEncoding.Strict().DecodeString(encoded)
}

// stringMembers reads one JSON object of strings whose names are exact and appear once. encoding/json would match names in
// any case and keep the last of two equal ones, so that other readers may see another header than the checked one.
func stringMembers(data []byte) (map[string]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	members := map[string]string{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, errors.New("not a JSON object")
		}
		value, err := decoder.Token()
		if err != nil {
			return nil, errors.New("not a JSON object")
		}
		key, _ := name.(string)
		text, ok := value.(string)
		if _, twice := members[key]; twice {
			return nil, errors.New("a member appears twice")
		}
		if !ok {
			return nil, errors.New("a member is not a string")
		}
		members[key] = text
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("not a complete JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON object")
	}
	return members, nil
}
