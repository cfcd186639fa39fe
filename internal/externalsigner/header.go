package externalsigner

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
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
	members, err := strictjson.Members(data)
	if err != nil {
		return header{}, &Error{Reason: ReasonHeader, Detail: "the signer's header", Cause: err}
	}
	var algorithm, kid, typ string
	known := map[string]*string{"alg": &algorithm, "kid": &kid, "typ": &typ}
	for _, m := range members {
		text, ok := strictjson.Text(m.Value)
		switch value := known[m.Name]; {
		case value == nil:
			return header{}, refuse(ReasonHeader, "the signer's header has the member %.64q, only alg, kid and typ are allowed", m.Name)
		case !ok:
			return header{}, refuse(ReasonHeader, "the signer's header has a member %s that is not a string", m.Name)
		default:
			*value = text
		}
	}
	switch {
	case typ != "JWT":
		return header{}, refuse(ReasonType, "the signer's header has typ %.64q, it must be JWT", typ)
	case !validKeyID(kid):
		return header{}, refuse(ReasonKeyID, "the signer's header has a kid of %d bytes: it must be 1 to %d characters of printable ASCII", len(kid), maxKeyIDLength)
	}
	read := header{Algorithm: identity.Algorithm(algorithm), KeyID: identity.KeyID(kid)}
	if read.Algorithm != identity.RS256 && read.Algorithm != identity.ES256 {
		return header{}, refuse(ReasonUnknownAlgorithm, "the signer's header has alg %.64q, it must be %s or %s", algorithm, identity.RS256, identity.ES256)
	}
	return read, nil
}

// decodeSegment decodes base64url without padding, in its one spelling (RFC 7515, section 2).
func decodeSegment(encoded string) ([]byte, error) {
	// encoding/base64 skips line breaks.
	if strings.ContainsAny(encoded, "\r\n") {
		return nil, errors.New("line break")
	}
	return base64.RawURLEncoding.Strict().DecodeString(encoded)
}
