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

// externalAccount is a credential configuration as AIP-4117 has it.
type externalAccount struct {
	Audience         string           `json:"audience"`
	CredentialSource credentialSource `json:"credential_source"`
	ImpersonationURL string           `json:"service_account_impersonation_url,omitempty"`
	SubjectTokenType string           `json:"subject_token_type"`
	TokenURL         string           `json:"token_url"`
	Type             string           `json:"type"`
	UniverseDomain   string           `json:"universe_domain"`
}

type credentialSource struct {
	File   string `json:"file"`
	Format format `json:"format"`
}

type format struct {
	Type string `json:"type"`
}

func audience(provider string) string { return "//iam.googleapis.com/" + provider }

func (c config) credentials(place target.Place) string {
	account := externalAccount{
		Audience:         audience(c.provider),
		CredentialSource: credentialSource{File: place.Token(), Format: format{Type: "text"}},
		SubjectTokenType: subjectTokenType,
		TokenURL:         tokenURL,
		Type:             "external_account",
		UniverseDomain:   universe,
	}
	if c.account != "" {
		account.ImpersonationURL = impersonationPrefix + c.account + impersonationSuffix
	}
	content, err := json.Marshal(account)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(content)
}
