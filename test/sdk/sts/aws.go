package sts

import (
	"encoding/xml"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// AWSRole is an IAM role, with the identity provider and the conditions of its trust policy.
type AWSRole struct {
	ARN string
	Trust
	// Short is how long short-lived credentials are valid. The SDK for Go uses credentials until the very second at which they
	// expire; botocore renews them when they are valid for less than ten minutes, and refuses those that have expired already.
	Short time.Duration
}

// awsLimits: STS takes RSA and EC keys, of which Credence has two kinds; tokens of 20000 characters at most.
func awsLimits() limits { return limits{algorithms: []string{"RS256", "ES256"}, token: 20000} }

// awsRefusals are codes and statuses of AssumeRoleWithWebIdentity; %s stands for what was found.
var awsRefusals = map[reason]struct {
	code, message string
	status        int
}{
	tooLong:      {"ValidationError", "1 validation error detected: Value at 'webIdentityToken' failed to satisfy constraint: Member must have length less than or equal to 20000", http.StatusBadRequest},
	malformed:    {"InvalidIdentityToken", "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)", http.StatusBadRequest},
	otherIssuer:  {"InvalidIdentityToken", "No OpenIDConnect provider found in your account for %s", http.StatusBadRequest},
	algorithm:    {"InvalidIdentityToken", "Token signing algorithm not supported: %s", http.StatusBadRequest},
	unreachable:  {"IDPCommunicationError", "Couldn't retrieve verification key from your identity provider", http.StatusBadRequest},
	unverifiable: {"InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider", http.StatusBadRequest},
	notYetValid:  {"InvalidIdentityToken", "Token is not valid before %s", http.StatusBadRequest},
	expired:      {"ExpiredTokenException", "Token expired: the expiration date/time was %s", http.StatusBadRequest},
	audience:     {"InvalidIdentityToken", "Incorrect token audience", http.StatusBadRequest},
	subject:      {"AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity", http.StatusForbidden},
}

func (s *Server) aws(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		awsError(w, http.StatusBadRequest, "MalformedInput", err.Error())
		return
	}
	switch r.Form.Get("Action") {
	case "AssumeRoleWithWebIdentity":
		s.assumeRoleWithWebIdentity(w, r)
	case "GetCallerIdentity":
		s.getCallerIdentity(w, r)
	default:
		awsError(w, http.StatusBadRequest, "InvalidAction", "Could not find operation "+r.Form.Get("Action"))
	}
}

func (s *Server) assumeRoleWithWebIdentity(w http.ResponseWriter, r *http.Request) {
	role, known := find(s.settings.AWS, func(role AWSRole) bool { return role.ARN == r.Form.Get("RoleArn") })
	if !known {
		awsError(w, http.StatusForbidden, "AccessDenied", awsRefusals[subject].message)
		return
	}
	// The service answers JSON of another form to those who ask for it, which no client here does.
	if strings.Contains(r.Header.Get("Accept"), "json") {
		awsError(w, http.StatusNotAcceptable, "UnsupportedByThisServer", "This server answers XML alone.")
		return
	}
	claims, refused := s.verifier.verify(r.Context(), r.Form.Get("WebIdentityToken"), role.Trust, awsLimits())
	if refused != nil {
		code := awsRefusals[refused.reason]
		awsError(w, code.status, code.code, refused.tell(code.message))
		return
	}
	principal := assumedRole(role.ARN, r.Form.Get("RoleSessionName"))
	session := s.grant(principal, claims)
	var answer struct {
		XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleWithWebIdentityResponse"`
		Result  struct {
			Subject  string `xml:"SubjectFromWebIdentityToken"`
			Audience string
			Provider string
			User     struct {
				Arn           string
				AssumedRoleID string `xml:"AssumedRoleId"`
			} `xml:"AssumedRoleUser"`
			Credentials struct {
				SessionToken, SecretAccessKey, Expiration string
				AccessKeyID                               string `xml:"AccessKeyId"`
			}
		} `xml:"AssumeRoleWithWebIdentityResult"`
	}
	answer.Result.Subject, answer.Result.Audience, answer.Result.Provider = claims.Subject, role.Audience, claims.Issuer
	answer.Result.User.Arn, answer.Result.User.AssumedRoleID = principal, "AROAEXAMPLE:"+r.Form.Get("RoleSessionName")
	answer.Result.Credentials.AccessKeyID, answer.Result.Credentials.SecretAccessKey = "ASIA"+session, "secret"
	answer.Result.Credentials.SessionToken = session
	answer.Result.Credentials.Expiration = s.settings.Now().UTC().Add(s.validity(role.Short)).Truncate(time.Second).Format(time.RFC3339)
	writeXML(w, http.StatusOK, answer)
}

// accessKey is the access key of a request that is signed (Signature Version 4).
var accessKey = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/`)

// getCallerIdentity returns whose credentials a request is signed with. It looks at the access key and the session token, not at
// the signature.
func (s *Server) getCallerIdentity(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("X-Amz-Security-Token")
	granted, known := s.Session(name)
	signed := accessKey.FindStringSubmatch(r.Header.Get("Authorization"))
	if !known || signed == nil || signed[1] != "ASIA"+name {
		awsError(w, http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
		return
	}
	var answer struct {
		XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetCallerIdentityResponse"`
		Result  struct {
			Arn     string
			UserID  string `xml:"UserId"`
			Account string
		} `xml:"GetCallerIdentityResult"`
	}
	answer.Result.Arn, answer.Result.UserID, answer.Result.Account = granted.Principal, "AROAEXAMPLE:"+name, strings.Split(granted.Principal, ":")[4]
	writeXML(w, http.StatusOK, answer)
}

// assumedRole is the ARN of a session of a role.
func assumedRole(role, session string) string {
	return strings.Replace(strings.Replace(role, ":iam:", ":sts:", 1), ":role/", ":assumed-role/", 1) + "/" + session
}

func awsError(w http.ResponseWriter, status int, code, message string) {
	var answer struct {
		XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
		Error   struct{ Type, Code, Message string }
		Request string `xml:"RequestId"`
	}
	answer.Error.Type, answer.Error.Code, answer.Error.Message = "Sender", code, message
	answer.Request = "00000000-0000-0000-0000-000000000000"
	writeXML(w, status, answer)
}

func writeXML(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(body)
}
