package registry

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// key is a short-lived access key of a cloud.
type key struct {
	id, secret, session string
}

// signAWS signs a request of AWS (Signature Version 4), its host and its headers.
func (k key) signAWS(request *http.Request, body []byte, service, region string, at time.Time) {
	at = at.UTC()
	request.Header.Set("X-Amz-Date", at.Format("20060102T150405Z"))
	if k.session != "" {
		request.Header.Set("X-Amz-Security-Token", k.session)
	}
	hash, headers := digest(request, body)
	secret := []byte("AWS4" + k.secret)
	scope := []string{at.Format("20060102"), region, service, "aws4_request"}
	for _, part := range scope {
		secret = mac(secret, part)
	}
	of := strings.Join(scope, "/")
	signature := mac(secret, "AWS4-HMAC-SHA256\n"+request.Header.Get("X-Amz-Date")+"\n"+of+"\n"+hash)
	request.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", k.id, of, headers, signature))
}

// signAlibaba signs a request of Alibaba Cloud (signature method V3) for an action of an API version. The nonce is used once.
func (k key) signAlibaba(request *http.Request, body []byte, action, version, nonce string, at time.Time) {
	for name, value := range map[string]string{
		"x-acs-action": action, "x-acs-version": version, "x-acs-signature-nonce": nonce, "x-acs-content-sha256": sum(body),
		"x-acs-date": at.UTC().Format(time.RFC3339), "x-acs-security-token": k.session,
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	hash, headers := digest(request, body)
	signature := mac([]byte(k.secret), "ACS3-HMAC-SHA256\n"+hash)
	request.Header.Set("Authorization", fmt.Sprintf("ACS3-HMAC-SHA256 Credential=%s,SignedHeaders=%s,Signature=%x", k.id, headers, signature))
}

// digest is of a request in the canonical form that both clouds sign, with all of its headers, whose names are returned. Its query must be sorted.
func digest(request *http.Request, body []byte) (hash, headers string) {
	values := map[string]string{"host": request.URL.Host}
	for name := range request.Header {
		values[strings.ToLower(name)] = strings.TrimSpace(request.Header.Get(name))
	}
	names := slices.Sorted(maps.Keys(values))
	headers = strings.Join(names, ";")
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n%s\n", request.Method, request.URL.EscapedPath(), request.URL.RawQuery)
	for _, name := range names {
		fmt.Fprintf(&text, "%s:%s\n", name, values[name])
	}
	fmt.Fprintf(&text, "\n%s\n%s", headers, sum(body))
	return sum([]byte(text.String())), headers
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

func mac(secret []byte, text string) []byte {
	hash := hmac.New(sha256.New, secret)
	hash.Write([]byte(text))
	return hash.Sum(nil)
}
