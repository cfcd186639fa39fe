package relyingparty

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
)

// configuration is the part of a discovery document that verification needs (OpenID Connect Discovery 1.0, section 3).
type configuration struct {
	issuer     string
	keySetURL  string
	algorithms []string
}

func parseConfiguration(body []byte) (configuration, error) {
	members, err := ParseObject(body)
	if err != nil {
		return configuration{}, err
	}
	var parsed configuration
	if parsed.issuer, err = requiredString(members, "issuer"); err != nil {
		return configuration{}, err
	}
	if parsed.keySetURL, err = requiredString(members, "jwks_uri"); err != nil {
		return configuration{}, err
	}
	if err := checkKeySetURL(parsed.keySetURL); err != nil {
		return configuration{}, err
	}
	if parsed.algorithms, err = stringsMember(members, "id_token_signing_alg_values_supported"); err != nil {
		return configuration{}, err
	}
	if len(parsed.algorithms) == 0 {
		// RS256 is the one that every issuer must support, and the one that relying parties fall back to.
		parsed.algorithms = []string{string(identity.RS256)}
	}
	return parsed, nil
}

func checkKeySetURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New(`"jwks_uri" is not a URL`)
	case u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf(`"jwks_uri" is %q, which is not an https URL`, s)
	case u.User != nil:
		return errors.New(`"jwks_uri" has userinfo (a user name or password before the host)`)
	}
	return nil
}

// publishedKey is one member of a JSON Web Key Set (RFC 7517, section 5).
type publishedKey struct {
	id        string
	algorithm identity.Algorithm
	key       any    // *rsa.PublicKey or *ecdsa.PublicKey
	unusable  string // why the key cannot verify anything; empty: it can
}

// parseKeySet returns the keys of a key set in their order. An unusable key is kept with the reason, so that
// it does not affect the others (RFC 7517, section 5) and a finding for a token that names it can have the reason.
func parseKeySet(body []byte) ([]publishedKey, error) {
	members, err := ParseObject(body)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(members["keys"], &raw); err != nil || raw == nil {
		return nil, errors.New(`"keys" is missing or not an array`)
	}
	keys := make([]publishedKey, len(raw))
	for i, item := range raw {
		keys[i] = parseKey(item)
	}
	return keys, nil
}

func parseKey(item []byte) publishedKey {
	var jwk jose.JSONWebKey
	if err := json.Unmarshal(item, &jwk); err != nil {
		var named struct {
			ID string `json:"kid"`
		}
		// Whatever else is wrong with the key, its name is worth showing; an empty one shows as nothing.
		_ = json.Unmarshal(item, &named)
		return publishedKey{id: named.ID, unusable: "it is not a key of a known type"}
	}
	parsed := publishedKey{id: jwk.KeyID, key: jwk.Key}
	key, isRSA := jwk.Key.(*rsa.PublicKey)
	algorithm, err := identity.AlgorithmOf(jwk.Key)
	switch {
	case !jwk.IsPublic():
		parsed.unusable = "it is not a public key"
	case jwk.Use != "" && jwk.Use != "sig":
		parsed.unusable = fmt.Sprintf("its use is %q, not signatures", jwk.Use)
	case isRSA && key.N.BitLen() > maxRSABits:
		parsed.unusable = fmt.Sprintf("it has %d bits, at most %d are accepted", key.N.BitLen(), maxRSABits)
	case err != nil:
		parsed.unusable = err.Error()
	case jwk.Algorithm != "" && jwk.Algorithm != string(algorithm):
		parsed.unusable = fmt.Sprintf("it is published for %q, which is not accepted or not what its type is for", jwk.Algorithm)
	default:
		parsed.algorithm = algorithm
	}
	return parsed
}

// maxRSABits bounds the work of one signature check; crypto/tls has the same bound.
const maxRSABits = 8192
