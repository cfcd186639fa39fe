package sts

import (
	"net/http"
	"time"
)

// AlibabaRole is a RAM role with the OIDC provider and the conditions of its trust policy.
type AlibabaRole struct {
	ARN, ProviderARN string
	Trust
}

// alibabaLimits: RAM takes RS256, tokens of 20000 characters at most, and those that were issued in the last 12 hours, unless
// the provider was set up otherwise.
func alibabaLimits() limits {
	return limits{algorithms: []string{"RS256"}, token: 20000, age: 12 * time.Hour}
}

// alibabaRefusals are codes of AssumeRoleWithOIDC; %s stands for what was found. Invalid is that of everything for which no
// other code is documented.
var alibabaRefusals = map[reason]struct {
	code, message string
	status        int
}{
	tooLong:      {"InvalidParameter.OIDCToken", "The parameter OIDCToken is too long: %s.", http.StatusBadRequest},
	malformed:    {"AuthenticationFail.OIDCToken.Invalid", "This token is no JSON Web Token.", http.StatusBadRequest},
	otherIssuer:  {"AuthenticationFail.OIDCToken.IssuerNotMatch", "The issuer %s is not that of the OIDC provider.", http.StatusBadRequest},
	algorithm:    {"AuthenticationFail.OIDCToken.Invalid", "The signature algorithm %s is not supported.", http.StatusBadRequest},
	unreachable:  {"AuthenticationFail.OIDCToken.IssuerConfigurationBroken", "The public keys of the issuer can't be fetched.", http.StatusBadRequest},
	unverifiable: {"AuthenticationFail.OIDCToken.Invalid", "The signature of this token can't be verified.", http.StatusBadRequest},
	notYetValid:  {"AuthenticationFail.OIDCToken.Invalid", "This token is not valid before %s.", http.StatusBadRequest},
	expired:      {"AuthenticationFail.OIDCToken.Expired", "This token has expired at %s.", http.StatusBadRequest},
	tooOld:       {"AuthenticationFail.OIDCToken.Invalid", "This token was issued %s ago, which is longer than the issuance limit.", http.StatusBadRequest},
	audience:     {"AuthenticationFail.OIDCToken.AudienceNotMatch", "The audience %s is no client ID of the OIDC provider.", http.StatusBadRequest},
	subject:      {"AuthenticationFail.NoPermission", "The role does not allow this token.", http.StatusForbidden},
}

func (s *Server) alibaba(w http.ResponseWriter, r *http.Request) {
	if action := r.FormValue("Action"); action != "AssumeRoleWithOIDC" {
		alibabaError(w, http.StatusBadRequest, "InvalidAction.NotFound", "Specified api "+action+" is not found.")
		return
	}
	role, known := find(s.settings.Alibaba, func(role AlibabaRole) bool { return role.ARN == r.FormValue("RoleArn") })
	if !known {
		alibabaError(w, http.StatusNotFound, "EntityNotExist.Role", "The role does not exist.")
		return
	}
	if role.ProviderARN != r.FormValue("OIDCProviderArn") {
		alibabaError(w, http.StatusForbidden, "AuthenticationFail.NoPermission", "There is no such OIDC provider.")
		return
	}
	claims, refused := s.verifier.verify(r.Context(), r.FormValue("OIDCToken"), role.Trust, alibabaLimits())
	if refused != nil {
		code := alibabaRefusals[refused.reason]
		alibabaError(w, code.status, code.code, refused.tell(code.message))
		return
	}
	session := s.grant(role.ARN, claims)
	writeJSON(w, http.StatusOK, map[string]any{
		"RequestId": "00000000-0000-0000-0000-000000000000",
		"Credentials": map[string]string{
			"AccessKeyId": "STS." + session, "AccessKeySecret": "secret", "SecurityToken": session,
			// The SDK renews credentials that are valid for less than three minutes.
			"Expiration": s.settings.Now().UTC().Add(s.validity(time.Minute)).Format("2006-01-02T15:04:05Z"),
		},
		"OIDCTokenInfo":   map[string]string{"Issuer": claims.Issuer, "Subject": claims.Subject, "ClientIds": role.Audience},
		"AssumedRoleUser": map[string]string{"Arn": role.ARN + "/" + r.FormValue("RoleSessionName"), "AssumedRoleId": "0:" + r.FormValue("RoleSessionName")},
	})
}

func alibabaError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]string{
		"RequestId": "00000000-0000-0000-0000-000000000000", "HostId": "sts.aliyuncs.com", "Code": code, "Message": message,
	})
}
