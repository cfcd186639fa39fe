package identity

import (
	"encoding/base64"
	"strings"
)

// Payload returns the payload of a token in the compact form of a JSON Web Signature (RFC 7515 section 3.1); ok is false for any other text. It
// verifies nothing.
func Payload(token string) (payload []byte, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return payload, err == nil
}
