package gcp

import (
	"encoding/json"

	"github.com/credence-id/credence/internal/target"
)

// These are all the URLs of a credential configuration: a user who could choose them could have tokens sent elsewhere.
const (
	tokenURL            = "https://sts.googleapis.com/v1/token"
	impersonationPrefix = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
	impersonationSuffix = ":generateAccessToken"
	universe            = "googleapis.com"
	subjectTokenType    = "urn:ietf:params:oauth:token-type:jwt"
)

func audience(provider string) string { return "//iam.googleapis.com/" + provider }

// credentials is a credential configuration as AIP-4117 has it.
func (c config) credentials(place target.Place) string {
	account := map[string]any{
		"audience":           audience(c.provider),
		"credential_source":  map[string]any{"file": place.Token(), "format": map[string]any{"type": "text"}},
		"subject_token_type": subjectTokenType,
		"token_url":          tokenURL,
		"type":               "external_account",
		"universe_domain":    universe,
	}
	if c.account != "" {
		account["service_account_impersonation_url"] = impersonationPrefix + c.account + impersonationSuffix
	}
	content, err := json.Marshal(account)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(content)
}
