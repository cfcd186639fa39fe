package relyingparty

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// UnsignedToken returns a token of an issuer with an invalid signature: all refuse it, and relying parties that trust the issuer
// do so for another reason than the others. It identifies nothing.
func UnsignedToken(issuer string) string {
	part := func(fields map[string]any) string {
		text, err := json.Marshal(fields)
		if err != nil {
			panic(err) // strings and numbers always have a JSON form
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]any{"alg": "RS256", "kid": "unsigned", "typ": "JWT"}) + "." +
		part(map[string]any{"iss": issuer, "sub": "unsigned", "aud": []string{"unsigned"}, "exp": int64(1) << 32}) + "." +
		base64.RawURLEncoding.EncodeToString(make([]byte, 256))
}

// TrustsIssuer reports whether kube-apiserver's answer to a TokenReview of an UnsignedToken is of one that trusts the issuer:
// its authenticator of OpenID Connect tokens has no opinion on those of other issuers, and names itself in its errors.
func TrustsIssuer(authenticated bool, reviewError string) bool {
	return authenticated || strings.Contains(reviewError, "oidc: ")
}
