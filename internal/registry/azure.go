package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

// azure is Azure Container Registry: Entra ID gives an access token of the identity's application, or managed identity, and the registry a refresh
// token for it, which it takes as a password.
type azure struct {
	CAFile string `json:"caFile"`

	host string
}

// azureHosts are login servers in the public cloud.
var azureHosts = regexp.MustCompile(`^[a-z0-9-]+\.azurecr\.io$`)

const (
	azureTokens   = "https://login.microsoftonline.com/"
	azureScope    = "https://containerregistry.azure.net/.default"
	azureUsername = "00000000-0000-0000-0000-000000000000"
)

func newAzure(host string, settings json.RawMessage) (exchange, error) {
	var s azure
	if err := strictjson.Known(settings, &s); err != nil {
		return nil, err
	}
	if !azureHosts.MatchString(host) {
		return nil, fmt.Errorf("images has the host %s: azure-container-registry is for login servers such as shop.azurecr.io", host)
	}
	s.host = host
	return s, nil
}

func (s azure) credentials(ctx context.Context, token Token, _ func() time.Time) (Credentials, error) {
	variables, err := token.variables("azure")
	if err != nil {
		return Credentials{}, err
	}
	tenant := variables["AZURE_TENANT_ID"]
	access, err := endpoint{
		Endpoint: azureTokens + tenant + "/oauth2/v2.0/token", CAFile: s.CAFile, cloud: "azure",
		refused: "compare the federated credential of the application with issuer, audience and subject of the identity",
	}.post(ctx, url.Values{
		"grant_type": {"client_credentials"}, "client_id": {variables["AZURE_CLIENT_ID"]}, "scope": {azureScope},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}, "client_assertion": {token.Value.Reveal()},
	}, token)
	if err != nil {
		return Credentials{}, err
	}
	e := endpoint{Endpoint: "https://" + s.host + "/oauth2/exchange", CAFile: s.CAFile, cloud: "azure", refused: "give the application or managed identity the role AcrPull of the registry"}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	err = e.postForm(ctx, url.Values{
		"grant_type": {"access_token"}, "service": {s.host}, "tenant": {tenant}, "access_token": {access.AccessToken},
	}, &answer, access.AccessToken)
	if err != nil {
		return Credentials{}, err
	}
	if answer.RefreshToken == "" {
		return Credentials{}, e.unexpected("its answer has no refresh_token")
	}
	return Credentials{Username: azureUsername, Password: identity.NewToken(answer.RefreshToken), Expires: expiryOf(answer.RefreshToken)}, nil
}

// expiryOf is when a token ends, by its own claim; zero if that can't be read, so that it is not kept.
func expiryOf(token string) time.Time {
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	payload, ok := identity.Payload(token)
	if !ok || json.Unmarshal(payload, &claims) != nil || claims.Expiry <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expiry, 0)
}
