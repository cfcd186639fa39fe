package sts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// AzureLoginServer is that of the only Azure Container Registry, AlibabaInstance the only instance of Alibaba's.
	AzureLoginServer = "shop.azurecr.io"
	AlibabaInstance  = "cri-kmsiwlxxdcvaduwb"
	azureScope       = "https://containerregistry.azure.net/.default"
)

// password opens a session for whose credentials a client has shown, and returns what names it.
func (s *Server) password(session string, text func(name string) string) (string, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	granted, known := s.sessions[session]
	if !known {
		return "", false
	}
	password := text(s.open(granted))
	s.sessions[password] = granted
	return password, true
}

func plainly(name string) string { return name }

// amazonRegistry is the API of ECR, and of ECR Public. Requests are signed as AWS's own signer signs them.
func (s *Server) amazonRegistry(w http.ResponseWriter, r *http.Request) {
	service, region, of := "ecr", "eu-central-1", "AmazonEC2ContainerRegistry_V20150921"
	public := strings.HasPrefix(r.Host, "api.ecr-public.")
	if public {
		service, region, of = "ecr-public", "us-east-1", "SpencerFrontendService"
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != of+".GetAuthorizationToken" ||
		r.Header.Get("Content-Type") != "application/x-amz-json-1.1" || string(body) != "{}" {
		amazonError(w, "UnknownOperationException", "")
		return
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	session := r.Header.Get("X-Amz-Security-Token")
	again, _ := http.NewRequestWithContext(r.Context(), r.Method, "https://"+r.Host+"/", nil)
	for _, name := range []string{"X-Amz-Target", "Content-Type"} {
		again.Header.Set(name, r.Header.Get(name))
	}
	key := aws.Credentials{AccessKeyID: "ASIA" + session, SecretAccessKey: "secret", SessionToken: session}
	if err == nil {
		err = signer.NewSigner().SignHTTP(r.Context(), key, again, fmt.Sprintf("%x", sha256.Sum256(body)), service, region, at)
	}
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		amazonError(w, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided.")
		return
	}
	password, known := s.password(session, plainly)
	if !known {
		amazonError(w, "UnrecognizedClientException", "The security token included in the request is invalid.")
		return
	}
	data := map[string]any{
		"authorizationToken": base64.StdEncoding.EncodeToString([]byte("AWS:" + password)),
		"expiresAt":          float64(s.settings.Now().Add(12*time.Hour).UnixMilli()) / 1000,
	}
	if public {
		writeJSON(w, http.StatusOK, map[string]any{"authorizationData": data})
		return
	}
	data["proxyEndpoint"] = "https://112233445566.dkr.ecr.eu-central-1.amazonaws.com"
	writeJSON(w, http.StatusOK, map[string]any{"authorizationData": []any{data}})
}

func amazonError(w http.ResponseWriter, code, message string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"__type": code, "message": message})
}

// azureRegistry exchanges an access token of Entra ID for a refresh token, which is the password.
func (s *Server) azureRegistry(w http.ResponseWriter, r *http.Request) {
	application, known := find(s.settings.Azure, func(a AzureApplication) bool { return a.Tenant == r.PostFormValue("tenant") })
	access := r.PostFormValue("access_token")
	s.mutex.Lock()
	scope := s.scopes[access]
	s.mutex.Unlock()
	var password string
	if known = known && r.URL.Path == "/oauth2/exchange" && r.PostFormValue("grant_type") == "access_token" && r.PostFormValue("service") == r.Host && scope == azureScope; known {
		password, known = s.password(access, func(name string) string {
			claims := fmt.Sprintf(`{"jti":%q,"exp":%d,"aud":%q,"tenant":%q}`, name, s.settings.Now().Add(3*time.Hour).Unix(), r.Host, application.Tenant)
			return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
		})
	}
	if !known {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"errors": []any{map[string]string{"code": "UNAUTHORIZED", "message": "authentication required"}}})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"refresh_token": password})
}

// alibabaRegistry is the API of Container Registry. Requests are signed by the signature method V3.
func (s *Server) alibabaRegistry(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("X-Acs-Action") != "GetAuthorizationToken" || r.Header.Get("X-Acs-Version") != "2018-12-01" {
		alibabaError(w, http.StatusBadRequest, "InvalidAction.NotFound", "Specified api is not found.")
		return
	}
	if r.URL.RawQuery != "InstanceId="+AlibabaInstance {
		alibabaError(w, http.StatusNotFound, "INSTANCE_NOT_EXIST", "instance is not exist")
		return
	}
	session := r.Header.Get("X-Acs-Security-Token")
	authorization := r.Header.Get("Authorization")
	_, names, _ := strings.Cut(authorization, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for _, name := range []string{"host", "x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-security-token", "x-acs-signature-nonce", "x-acs-version"} {
		if !strings.Contains(";"+names+";", ";"+name+";") {
			alibabaError(w, http.StatusBadRequest, "SignatureDoesNotMatch", name+" is not signed")
			return
		}
	}
	canonical := r.Method + "\n/\n" + r.URL.RawQuery + "\n"
	for _, name := range strings.Split(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + names + "\n" + r.Header.Get("X-Acs-Content-Sha256")
	hash := hmac.New(sha256.New, []byte("secret"))
	fmt.Fprintf(hash, "ACS3-HMAC-SHA256\n%x", sha256.Sum256([]byte(canonical)))
	if want := fmt.Sprintf("ACS3-HMAC-SHA256 Credential=STS.%s,SignedHeaders=%s,Signature=%x", session, names, hash.Sum(nil)); authorization != want {
		alibabaError(w, http.StatusBadRequest, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation.")
		return
	}
	password, known := s.password(session, plainly)
	if !known {
		alibabaError(w, http.StatusForbidden, "InvalidSecurityToken.Malformed", "The specified SecurityToken is malformed.")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"RequestId": "00000000-0000-0000-0000-000000000000", "Code": "success", "IsSuccess": true,
		"TempUsername": "cr_temp_user", "AuthorizationToken": password, "ExpireTime": s.settings.Now().Add(s.validity(time.Minute)).UnixMilli(),
	})
}
