package sts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Settings are what the clouds were set up with, and what the stand-in needs.
type Settings struct {
	// Client fetches the documents of issuers.
	Client *http.Client
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// ShortLived makes credentials that every SDK renews before it uses them again.
	ShortLived bool

	AWS     []AWSRole
	Azure   []AzureApplication
	Google  []GoogleProvider
	Alibaba []AlibabaRole
}

// Server is the four clouds under their own host names. It is safe for concurrent use.
type Server struct {
	settings Settings
	verifier verifier
	hosts    map[string]http.HandlerFunc

	mutex  sync.Mutex
	grants []Grant
	// sessions are the credentials that were given, by what a client presents.
	sessions map[string]Grant
	// scopes are those of access tokens of Azure.
	scopes   map[string]string
	nameless int
}

// Grant is one token that was accepted.
type Grant struct {
	// Principal is who the credentials are for, as the cloud names it.
	Principal string
	// TokenID and KeyID are the jti claim and the kid of the token.
	TokenID, KeyID string
}

// New returns a stand-in.
func New(settings Settings) *Server {
	if settings.Now == nil {
		settings.Now = time.Now
	}
	s := &Server{settings: settings, verifier: verifier{client: settings.Client, now: settings.Now}, sessions: map[string]Grant{}, scopes: map[string]string{}}
	s.hosts = map[string]http.HandlerFunc{
		"sts.amazonaws.com":              s.aws,
		"sts.eu-central-1.amazonaws.com": s.aws,
		"sts.us-east-1.amazonaws.com":    s.aws,
		"login.microsoftonline.com":      s.azure,
		"login.microsoft.com":            s.azure,
		"sts.googleapis.com":             s.googleExchange,
		"iamcredentials.googleapis.com":  s.googleImpersonation,
		"sts.aliyuncs.com":               s.alibaba,
		"sts.eu-central-1.aliyuncs.com":  s.alibaba,
		// Registries of images.
		"api.ecr.eu-central-1.amazonaws.com":     s.amazonRegistry,
		"api.ecr-public.us-east-1.amazonaws.com": s.amazonRegistry,
		AzureLoginServer:                         s.azureRegistry,
		"cr.eu-central-1.aliyuncs.com":           s.alibabaRegistry,
	}
	return s
}

// Hosts are the names that the stand-in serves, as the SDKs know them.
func (s *Server) Hosts() []string {
	var hosts []string
	for host := range s.hosts {
		hosts = append(hosts, host)
	}
	return hosts
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handle, known := s.hosts[r.Host]
	if !known {
		http.Error(w, "this host is not one of the stand-in's", http.StatusMisdirectedRequest)
		return
	}
	handle(w, r)
}

// Grants are the tokens that were accepted, oldest first; the caller owns the copy.
func (s *Server) Grants() []Grant {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]Grant{}, s.grants...)
}

// grant records that a token was accepted, and returns what names the credentials that it gave.
func (s *Server) grant(principal string, claims claims) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	granted := Grant{Principal: principal, TokenID: claims.ID, KeyID: claims.KeyID}
	s.grants = append(s.grants, granted)
	return s.open(granted)
}

// open makes the name of a session. The mutex is held.
func (s *Server) open(granted Grant) string {
	s.nameless++
	name := fmt.Sprintf("session-%d", s.nameless)
	s.sessions[name] = granted
	return name
}

// Session returns whose the credentials are that a client presents: the session token of AWS and Alibaba Cloud, the access
// token of Azure and Google Cloud, the password of their registries.
func (s *Server) Session(name string) (Grant, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	granted, known := s.sessions[name]
	return granted, known
}

// validity is how long credentials are valid: short is what makes the SDK of the cloud renew them before the next use.
func (s *Server) validity(short time.Duration) time.Duration {
	if s.settings.ShortLived {
		return short
	}
	return time.Hour
}

// find returns the first element that matches.
func find[T any](list []T, matches func(T) bool) (T, bool) {
	for _, element := range list {
		if matches(element) {
			return element, true
		}
	}
	var none T
	return none, false
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
