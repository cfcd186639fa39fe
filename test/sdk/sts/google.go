package sts

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// GoogleProvider is a provider of a workload identity pool. Its attribute condition is the subject of the trust.
type GoogleProvider struct {
	// Name is projects/…/locations/global/workloadIdentityPools/…/providers/….
	Name string
	Trust
	// ServiceAccounts are the e-mail addresses of those that the subject may impersonate.
	ServiceAccounts []string
}

// googleLimits: exp is before iat plus 48 hours, and google.subject, which is the sub claim, has 127 bytes at most.
func googleLimits() limits {
	return limits{algorithms: []string{"RS256", "ES256"}, lifetime: 48 * time.Hour, below: true, subject: 127}
}

// googleRefusals are codes of the token exchange (RFC 6749, section 5.2); %s stands for what was found.
var googleRefusals = map[reason]struct{ code, message string }{
	malformed:    {"invalid_request", "Invalid value for subject_token: it is not a JWT."},
	otherIssuer:  {"invalid_grant", "The issuer in ID Token %s does not match the expected ones."},
	algorithm:    {"invalid_grant", "The signing algorithm %s of the ID Token is not supported."},
	unreachable:  {"invalid_grant", "Error connecting to the given credential's issuer."},
	unverifiable: {"invalid_grant", "Invalid JWT signature: no key of the issuer verifies it."},
	notYetValid:  {"invalid_grant", "ID Token issued at %s is used before it is valid."},
	expired:      {"invalid_grant", "ID Token is stale to sign-in: it expired at %s."},
	lifetime:     {"invalid_grant", "ID Token is valid for %s: exp must be less than 48 hours after iat."},
	audience:     {"invalid_grant", "The audience in ID Token [%s] does not match the expected audience."},
	subject:      {"unauthorized_client", "The given credential is rejected by the attribute condition."},
	subjectSize:  {"invalid_request", "The size of mapped attribute google.subject exceeds the 127 bytes limit: %s."},
}

func (s *Server) googleExchange(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/token" {
		http.NotFound(w, r)
		return
	}
	for field, want := range map[string]string{
		"grant_type":           "urn:ietf:params:oauth:grant-type:token-exchange",
		"requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
		"subject_token_type":   "urn:ietf:params:oauth:token-type:jwt",
	} {
		if r.PostFormValue(field) != want {
			exchangeError(w, "invalid_request", fmt.Sprintf("Invalid value for %q.", field))
			return
		}
	}
	provider, known := find(s.settings.Google, func(p GoogleProvider) bool {
		return "//iam.googleapis.com/"+p.Name == r.PostFormValue("audience")
	})
	if !known {
		exchangeError(w, "invalid_target", `The target service indicated by the "audience" parameters is invalid.`)
		return
	}
	claims, refused := s.verifier.verify(r.Context(), r.PostFormValue("subject_token"), provider.Trust, googleLimits())
	if refused != nil {
		code := googleRefusals[refused.reason]
		exchangeError(w, code.code, refused.tell(code.message))
		return
	}
	session := s.grant(googlePrincipal(provider.Name, claims.Subject), claims)
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": session, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer",
		// The SDK renews tokens that are valid for less than ten seconds.
		"expires_in": int(s.validity(5*time.Second) / time.Second),
	})
}

// googlePrincipal is how policies name a subject of a pool.
func googlePrincipal(provider, subject string) string {
	pool, _, _ := strings.Cut(provider, "/providers/")
	return "principal://iam.googleapis.com/" + pool + "/subject/" + subject
}

func (s *Server) googleImpersonation(w http.ResponseWriter, r *http.Request) {
	account, ok := strings.CutPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/")
	account, generate := strings.CutSuffix(account, ":generateAccessToken")
	if !ok || !generate || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	federated, known := s.Session(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if !known {
		apiError(w, http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
		return
	}
	_, allowed := find(s.settings.Google, func(p GoogleProvider) bool {
		_, listed := find(p.ServiceAccounts, func(name string) bool { return name == account })
		return listed && googlePrincipal(p.Name, p.Subject) == federated.Principal
	})
	if !allowed {
		apiError(w, http.StatusForbidden, "PERMISSION_DENIED", "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).")
		return
	}
	federated.Principal = account
	s.mutex.Lock()
	s.grants = append(s.grants, federated)
	token := s.open(federated)
	s.mutex.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{
		"accessToken": token, "expireTime": s.settings.Now().UTC().Add(s.validity(5 * time.Second)).Format(time.RFC3339),
	})
}

func exchangeError(w http.ResponseWriter, code, message string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": message})
}

func apiError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"code": status, "message": message, "status": code}})
}
