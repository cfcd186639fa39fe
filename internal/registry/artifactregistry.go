package registry

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

// artifactRegistry is Google Artifact Registry: its password is an access token of a service account, which a provider of workload identity
// federation may impersonate; or without one the provider's own access token.
type artifactRegistry struct {
	// Provider is projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER.
	Provider string `json:"provider"`
	// ServiceAccount is the address of the service account.
	ServiceAccount string `json:"serviceAccount"`
	CAFile         string `json:"caFile"`
}

var (
	googleProviders = regexp.MustCompile(`^projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+$`)
	googleAccounts  = regexp.MustCompile(`^[a-z0-9.-]+@[a-z0-9.-]+$`)
)

const (
	googleTokens      = "https://sts.googleapis.com/v1/token"
	googleImpersonate = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
	googleScope       = "https://www.googleapis.com/auth/cloud-platform"
	googleUsername    = "oauth2accesstoken"
)

func newArtifactRegistry(_ string, settings json.RawMessage) (exchange, error) {
	var s artifactRegistry
	if err := strictjson.Known(settings, &s); err != nil {
		return nil, err
	}
	switch {
	case !googleProviders.MatchString(s.Provider):
		return nil, errors.New("provider is not projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER")
	case s.ServiceAccount != "" && !googleAccounts.MatchString(s.ServiceAccount):
		return nil, errors.New("serviceAccount is not the address of a service account")
	}
	return s, nil
}

func (s artifactRegistry) credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error) {
	federated, err := tokenExchange{
		endpoint: endpoint{Endpoint: googleTokens, CAFile: s.CAFile, cloud: "gcp", refused: "compare the provider of the pool with issuer, audience and subject of the identity"}, Username: googleUsername,
		Audience: "//iam.googleapis.com/" + s.Provider, Scope: googleScope, RequestedTokenType: tokenendpoint.AccessToken,
	}.credentials(ctx, token, now)
	if err != nil || s.ServiceAccount == "" {
		return federated, err
	}
	return s.impersonate(ctx, federated)
}

// impersonate returns the credentials of the service account.
func (s artifactRegistry) impersonate(ctx context.Context, federated Credentials) (Credentials, error) {
	e := endpoint{Endpoint: googleImpersonate + s.ServiceAccount + ":generateAccessToken", CAFile: s.CAFile, cloud: "gcp",
		refused: "grant roles/iam.workloadIdentityUser on the service account to the identity"}
	body, err := json.Marshal(map[string]any{"scope": []string{googleScope}})
	if err != nil {
		return Credentials{}, err
	}
	request, err := e.request(ctx, "application/json", body)
	if err != nil {
		return Credentials{}, err
	}
	request.Header.Set("Authorization", "Bearer "+federated.Password.Reveal())
	var answer struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if err := e.do(request, json.Unmarshal, &answer, federated.Password.Reveal()); err != nil {
		return Credentials{}, err
	}
	if answer.AccessToken == "" {
		return Credentials{}, e.unexpected("its answer has no accessToken")
	}
	return Credentials{Username: googleUsername, Password: identity.NewToken(answer.AccessToken), Expires: answer.ExpireTime}, nil
}
