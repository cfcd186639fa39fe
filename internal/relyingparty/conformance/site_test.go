package conformance

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty/relyingpartytest"
	"github.com/credence-id/credence/test/testkit"
)

const (
	siteIssuer        = "https://identity.example.com/team"
	configurationPath = "/team/.well-known/openid-configuration"
	jwksPath          = "/team/jwks"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

var (
	rsaKey    = relyingpartytest.RSAKey
	ecKey     = sync.OnceValue(relyingpartytest.NewECKey)
	authority = sync.OnceValue(root)
	stranger  = sync.OnceValue(relyingpartytest.NewECKey)
)

// healthy returns documents with one key of each algorithm, as Credence publishes them.
func healthy(t testing.TB) discovery.Documents {
	t.Helper()
	var keys []identity.PublicKey
	for _, public := range []crypto.PublicKey{&rsaKey().PublicKey, &ecKey().PublicKey} {
		key := testkit.Need(identity.NewPublicKey(public))(t)
		keys = append(keys, key)
	}
	documents := testkit.Need(discovery.New(siteIssuer, keys))(t)
	return documents
}

// site is an issuer on the internet: a real TLS server behind the name identity.example.com, whose every part is a field,
// so that a test can plant a defect in it before it starts.
type site struct {
	configuration map[string]any
	keys          []map[string]any
	keySet        map[string]any                              // members beside keys
	header        map[string]http.Header                      // by path; an empty value removes a field
	handle        map[string]func(http.ResponseWriter) bool   // by path; true: it has answered
	takes         map[string]time.Duration                    // by path, of the clock
	body          map[string][]byte                           // by path; replaces the document
	forgets       map[string]bool                             // by path: its validator means nothing
	certificate   x509.Certificate                            // of the server
	tls           *tls.Config                                 // of the server
	plain         bool                                        // serves http
	dial          func(ctx context.Context) (net.Conn, error) // replaces the way to the server
	trusted       *testkit.Certificate                        // the authority that the client trusts
	claims        map[string]any                              // of the token; nil removes one
	headers       map[string]any                              // of the token
	signer        crypto.Signer                               // of the token
	keyID         string                                      // of the token; empty: none
	spoil         func(token string) string                   // changes the token
	options       Options

	mu      sync.Mutex
	elapsed time.Duration
}

func newSite(t testing.TB) *site {
	t.Helper()
	documents := healthy(t)
	s := &site{
		header: map[string]http.Header{configurationPath: {}, jwksPath: {}}, handle: map[string]func(http.ResponseWriter) bool{},
		takes: map[string]time.Duration{}, forgets: map[string]bool{}, body: map[string][]byte{}, claims: map[string]any{}, headers: map[string]any{},
		trusted: authority(), signer: ecKey(), keyID: string(documents.KeyIDs()[1]), tls: &tls.Config{},
		certificate: x509.Certificate{
			DNSNames:  []string{"identity.example.com", "keys.example.com"},
			NotBefore: start.Add(-24 * time.Hour), NotAfter: start.Add(60 * 24 * time.Hour),
		},
		options: Options{Issuer: siteIssuer, Timeout: 5 * time.Minute},
	}
	var set struct{ Keys []map[string]any }
	if json.Unmarshal(documents.Configuration(), &s.configuration) != nil || json.Unmarshal(documents.JWKS(), &set) != nil {
		t.Fatal("decode the documents")
	}
	s.keys = set.Keys
	return s
}

func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return start.Add(s.elapsed)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.elapsed += s.takes[r.URL.Path]
	s.mu.Unlock()
	if answered := s.handle[r.URL.Path]; answered != nil && answered(w) {
		return
	}
	var document any
	header := w.Header()
	switch r.URL.Path {
	case configurationPath:
		document = s.configuration
		header.Set("Content-Type", "application/json")
	case jwksPath:
		set := maps.Clone(s.keySet)
		if set == nil {
			set = map[string]any{}
		}
		if _, replaced := set["keys"]; !replaced {
			set["keys"] = s.keys
		}
		document = set
		header.Set("Content-Type", "application/jwk-set+json")
	default:
		http.NotFound(w, r)
		return
	}
	body, replaced := s.body[r.URL.Path]
	if !replaced {
		var err error
		if body, err = json.Marshal(document); err != nil {
			panic(err)
		}
	}
	sum := sha256.Sum256(body)
	header.Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	header.Set("Cache-Control", "public, max-age=3600")
	maps.Copy(header, s.header[r.URL.Path])
	if tag := header.Get("ETag"); tag != "" && !s.forgets[r.URL.Path] && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// check starts the server and runs all checks.
func (s *site) check(t testing.TB, handler http.Handler) Report {
	t.Helper()
	server := relyingpartytest.NewServer(handler)
	if s.plain {
		server.Start()
	} else {
		s.tls.Certificates = []tls.Certificate{testkit.NewCertificate(t, s.certificate, authority()).TLS()}
		server.TLS = s.tls
		server.StartTLS()
	}
	defer server.Close()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.trusted.Pool(), MinVersion: tls.VersionTLS12, Time: s.now},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if s.dial != nil {
				return s.dial(ctx)
			}
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	defer transport.CloseIdleConnections()
	options := s.options
	options.Client, options.Clock = &http.Client{Transport: transport}, s.now
	return Run(t.Context(), options)
}

// root is a new authority.
func root() *testkit.Certificate {
	made, err := testkit.Certify(x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, NotBefore: start.Add(-10000 * time.Hour), NotAfter: start.Add(10000 * time.Hour), IsCA: true,
	}, nil)
	if err != nil {
		panic(err)
	}
	return made
}

// withToken adds a token, valid except for the fields of the site.
func (s *site) withToken(t testing.TB) {
	t.Helper()
	ends := map[string]any{"exp": start.Add(time.Hour - time.Minute).Unix()}
	payload := relyingpartytest.Marshal(t, relyingpartytest.Claims(siteIssuer, start, ends, s.claims))
	s.options.Token = relyingpartytest.Sign(t, s.signer, s.keyID, payload, s.headers)
	if s.spoil != nil {
		s.options.Token = s.spoil(s.options.Token)
	}
}
