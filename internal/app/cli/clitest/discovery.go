package clitest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

// rsaKey and teamKey are made once: an RSA key takes long.
var (
	rsaKey  = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	teamKey = sync.OnceValues(newKey)
)

// startDiscovery starts a real discovery handler for a script, and other places that have its documents or others:
//
//	$TEAM    an issuer with the keys $KEY_A (RS256) and $KEY_B (ES256), and a token $TEAM_TOKEN in the file team.token; $TEAM_SEAL is that of
//	         the passwords {} of registry.example.com/team, made from it
//	$EDGE    the same bytes under another URL
//	$STALE   those of the time before $KEY_B
//	$LEAKY   an issuer whose key set has a private key
//	$STATIC  what a static server makes of the folder "site" of the script
//	$DOWN    503
func startDiscovery(ts *testscript.TestScript) {
	first, err := rsaKey()
	ts.Check(err)
	second, err := teamKey()
	ts.Check(err)
	mux := http.NewServeMux()
	url, _ := serveTLS(ts, mux)
	issuer := identity.Issuer(url + "/team")

	current, ids, err := documentsHandler(issuer, first.Public(), second.Public())
	ts.Check(err)
	stale, _, err := documentsHandler(issuer, first.Public())
	ts.Check(err)
	mux.Handle("/team/", current)
	mux.Handle("/edge/", at("/team", current))
	mux.Handle("/stale/", at("/team", stale))
	mux.HandleFunc("/leaky/", func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		at("/team", current).ServeHTTP(recorder, r)
		_, _ = w.Write([]byte(strings.NewReplacer("/team", "/leaky", `"kty":"EC"`, `"kty":"EC","d":"c2VjcmV0"`).Replace(recorder.Body.String())))
	})
	mux.Handle("/static/", http.StripPrefix("/static", http.FileServer(http.Dir(workFile(ts, "site")))))
	mux.HandleFunc("/down/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for _, name := range []string{"team", "edge", "stale", "leaky", "static", "down"} {
		ts.Setenv(strings.ToUpper(name), url+"/"+name)
	}
	ts.Setenv("KEY_A", string(ids[0]))
	ts.Setenv("KEY_B", string(ids[1]))
	token, err := signClaims(second, string(ids[1]), map[string]any{
		"iss": string(issuer), "sub": "gardener.cloud:workloadidentity:team:app:uid", "aud": []string{"one"}, "jti": "id",
		"iat": 1782906900, "nbf": 1782906900, "exp": 1782910500,
	})
	ts.Check(err)
	ts.Setenv("TEAM_TOKEN", token)
	ts.Setenv("TEAM_SEAL", renewal.Seal(renewal.Text("registry.example.com/team", "generic", "", token), []byte("{}")))
	write(ts, "team.token", token+"\n")
}

func documentsHandler(issuer identity.Issuer, public ...crypto.PublicKey) (http.Handler, []identity.KeyID, error) {
	keys := make([]identity.PublicKey, len(public))
	for i, key := range public {
		var err error
		if keys[i], err = identity.NewPublicKey(key); err != nil {
			return nil, nil, err
		}
	}
	documents, err := discovery.New(issuer, keys)
	if err != nil {
		return nil, nil, err
	}
	handler := discovery.NewHandler(discovery.Settings{Issuer: issuer})
	return handler, documents.KeyIDs(), handler.Publish(documents)
}

// at serves under any first segment of a path what handler serves under another one.
func at(segment string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		moved := r.Clone(r.Context())
		moved.URL.Path = segment + "/" + rest
		handler.ServeHTTP(w, moved)
	})
}
