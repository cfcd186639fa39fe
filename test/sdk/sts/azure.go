package sts

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// AzureApplication is an application of Microsoft Entra, or a managed identity, with its federated identity credential.
type AzureApplication struct {
	Tenant, ClientID string
	Trust
}

// azureLimits: Entra takes RS256 alone, and lifetimes of 25 hours at most.
func azureLimits() limits { return limits{algorithms: []string{"RS256"}, lifetime: 25 * time.Hour} }

// azureRefusals are the numbers of the AADSTS codes; %s stands for what was found.
var azureRefusals = map[reason]struct {
	number         int
	error, message string
}{
	malformed:    {50027, "invalid_request", "JWT token is invalid or malformed."},
	otherIssuer:  {700211, "invalid_client", "No matching federated identity record found for presented assertion issuer '%s'."},
	algorithm:    {5002738, "invalid_client", "Invalid JWT token. '%s' is not a supported signature algorithm. Supported signing algorithms are: 'RS256'."},
	unreachable:  {501661, "invalid_request", "Request to External OIDC endpoint failed."},
	unverifiable: {7000272, "invalid_client", "The key that the federated credential is signed with is not in the metadata of its identity provider."},
	notYetValid:  {700024, "invalid_client", "Client assertion is not within its valid time range: %s."},
	expired:      {700024, "invalid_client", "Client assertion is not within its valid time range: it expired at %s."},
	lifetime:     {70023, "invalid_request", "The lifetime of the external token, %s, is longer than 1.01:00:00."},
	audience:     {700212, "invalid_client", "No matching federated identity record found for presented assertion audience '%s'."},
	subject:      {700213, "invalid_client", "No matching federated identity record found for presented assertion subject '%s'."},
}

func (s *Server) azure(w http.ResponseWriter, r *http.Request) {
	tenant, endpoint, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch endpoint {
	case "discovery/instance":
		writeJSON(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": "https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration",
			"api-version":               "1.1",
			"metadata": []any{map[string]any{
				"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net",
				"aliases": []string{"login.microsoftonline.com", "login.windows.net", "login.microsoft.com", "sts.windows.net"},
			}},
		})
	case "v2.0/.well-known/openid-configuration":
		base := "https://login.microsoftonline.com/" + tenant
		writeJSON(w, http.StatusOK, map[string]any{
			"issuer": base + "/v2.0", "token_endpoint": base + "/oauth2/v2.0/token",
			"authorization_endpoint": base + "/oauth2/v2.0/authorize", "jwks_uri": base + "/discovery/v2.0/keys",
		})
	case "oauth2/v2.0/token":
		s.clientAssertion(w, r, tenant)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) clientAssertion(w http.ResponseWriter, r *http.Request, tenant string) {
	const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	if r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("client_assertion_type") != assertionType {
		s.azureError(w, http.StatusBadRequest, 70003, "unsupported_grant_type", "The app requested an unsupported grant type.")
		return
	}
	application, known := find(s.settings.Azure, func(a AzureApplication) bool {
		return a.Tenant == tenant && a.ClientID == r.PostFormValue("client_id")
	})
	if !known {
		s.azureError(w, http.StatusBadRequest, 700016, "unauthorized_client", "Application with identifier '"+r.PostFormValue("client_id")+"' was not found in the directory.")
		return
	}
	claims, refused := s.verifier.verify(r.Context(), r.PostFormValue("client_assertion"), application.Trust, azureLimits())
	if refused != nil {
		code := azureRefusals[refused.reason]
		status := http.StatusUnauthorized
		if code.error == "invalid_request" {
			status = http.StatusBadRequest
		}
		s.azureError(w, status, code.number, code.error, refused.tell(code.message))
		return
	}
	session := s.grant(application.ClientID, claims)
	s.mutex.Lock()
	s.scopes[session] = r.PostFormValue("scope")
	s.mutex.Unlock()
	// The SDK renews tokens that are valid for less than five minutes.
	seconds := int(s.validity(time.Minute) / time.Second)
	writeJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": session})
}

func (s *Server) azureError(w http.ResponseWriter, status, number int, code, message string) {
	const nobody = "00000000-0000-0000-0000-000000000000"
	timestamp := s.settings.Now().UTC().Format("2006-01-02 15:04:05Z")
	writeJSON(w, status, map[string]any{
		"error":             code,
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s Correlation ID: %s Timestamp: %s", number, message, nobody, nobody, timestamp),
		"error_codes":       []int{number}, "timestamp": timestamp, "trace_id": nobody, "correlation_id": nobody,
		"error_uri": fmt.Sprintf("https://login.microsoftonline.com/error?code=%d", number),
	})
}
