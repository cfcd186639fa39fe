package credential

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Claims are some claims of an unverified JSON Web Token (RFC 7519 section 4.1): the time after which it is useless,
// and a name for display. Do not rely on them for anything else.
type Claims struct {
	Issuer, Subject   string
	IssuedAt, Expires time.Time
}

// Unverified returns the claims of a token; ok is false if it is not a JSON Web Token. An absent or invalid time is zero.
func Unverified(token Secret) (claims Claims, ok bool) {
	payload, ok := identity.Payload(token.Reveal())
	if !ok || !bytes.HasPrefix(bytes.TrimSpace(payload), []byte("{")) {
		return Claims{}, false
	}
	var wire struct {
		Issuer   any `json:"iss"`
		Subject  any `json:"sub"`
		IssuedAt any `json:"iat"`
		Expires  any `json:"exp"`
	}
	if json.Unmarshal(payload, &wire) != nil {
		return Claims{}, false
	}
	claims.Issuer, _ = wire.Issuer.(string)
	claims.Subject, _ = wire.Subject.(string)
	return Claims{Issuer: claims.Issuer, Subject: claims.Subject, IssuedAt: numericDate(wire.IssuedAt), Expires: numericDate(wire.Expires)}, true
}

// numericDate is a NumericDate (RFC 7519 section 2): seconds since 1970, perhaps with a fraction, which is cut off.
func numericDate(value any) time.Time {
	const year10000 = 253402300800
	seconds, ok := value.(float64)
	if !ok || math.IsNaN(seconds) || seconds <= 0 || seconds >= year10000 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}
