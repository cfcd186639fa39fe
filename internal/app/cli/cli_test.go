package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/pki"
)

// scriptNow is the time of the clock of every script.
const scriptNow = "2026-07-01T12:00:00Z"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"credence":         runScripted,
		"kubectl-credence": runScripted,
		// The small program, with the same clock.
		"credence-credential": runScriptedProvider,
	})
}

// runScripted is the program as scripts run it: with a clock that stands still, or runs from there or is the real one if they set so. So it notes what is
// waited for never, however slow the machine is, or at once if they set so. Nor does it give up a completion.
func runScripted() {
	now, err := time.Parse(time.RFC3339, scriptNow)
	if err != nil {
		panic(err)
	}
	options := Options{Program: os.Args[0], Clock: func() time.Time { return now }, CompletionTimeout: 5 * time.Minute}
	if started := time.Now(); os.Getenv("CLOCK_RUNS") != "" {
		options.Clock = func() time.Time { return now.Add(time.Since(started)) }
	}
	if os.Getenv("CLOCK_RUNS") == "real" {
		options.Clock = time.Now
	}
	impatient := os.Getenv("IMPATIENT") != ""
	options.After = func(_ time.Duration, f func()) func() bool {
		if impatient {
			f()
		}
		return func() bool { return !impatient }
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(Run(context.Background(), New(streams, options), os.Args[1:]))
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Setup:               setup,
		RequireExplicitExec: true,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"notoken": noToken,
			"ring":    makeRing,
		},
	})
}

// exits CODE COMMAND... runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok { // the time of all tests is over
			ts.Fatalf("%v", err)
		}
		got = strconv.Itoa(exit.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// notoken holds the output of the last command to the rule that it shows no token, whole or in its telling part.
func noToken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: notoken")
	}
	for _, name := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(name)
		for _, variable := range tokenVariables() {
			token := ts.Getenv(variable)
			signature := token[strings.LastIndex(token, ".")+1:]
			if strings.Contains(text, token) || strings.Contains(text, signature) {
				ts.Fatalf("%s shows the token $%s", name, variable)
			}
		}
	}
}

func tokenVariables() []string {
	return []string{"TOKEN", "EXPIRED", "FOREIGN", "OLD_KEY", "EVERYTHING", "ESCAPES", "TEAM_TOKEN", "BOUND"}
}

// setup starts an issuer and an API server for one script, and sets the variables and files by which it finds them.
func setup(env *testscript.Env) error {
	issuer, err := newScriptIssuer(env)
	if err != nil {
		return err
	}
	if err := startDiscovery(env); err != nil {
		return err
	}
	env.Setenv("GORACE", "atexit_sleep_ms=10") // a program with the race detector waits for a second before it ends
	env.Setenv("NOW", scriptNow)
	env.Setenv("DOLLAR", "$")
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
	ring := &ringFake{directory: filepath.Join(env.WorkDir, "ring-of-cluster")}
	env.Values[ringKey{}] = ring
	server := httptest.NewUnstartedServer(&clusterFake{
		token: env.Getenv("TOKEN"), record: filepath.Join(env.WorkDir, "request.json"), keys: ring,
		objects: &objectsFake{file: filepath.Join(env.WorkDir, "cluster.yaml"), env: env},
	})
	server.Config.ErrorLog = issuer.Config.ErrorLog
	server.StartTLS()
	env.Defer(server.Close)
	env.Setenv("API", server.URL)
	if err := makeAgentCertificate(env); err != nil {
		return err
	}
	if err := startSecondCluster(env); err != nil {
		return err
	}
	if err := startCredentialCluster(env); err != nil {
		return err
	}
	return writeKubeconfig(env, server.URL)
}

// makeAgentCertificate sets variables to the certificate of an agent's Service, and to that of its authority, in base64.
func makeAgentCertificate(env *testscript.Env) error {
	now, err := time.Parse(time.RFC3339, scriptNow)
	if err != nil {
		return err
	}
	pair, err := pki.New("ca", time.Hour, now, rand.Reader)
	if err != nil {
		return err
	}
	authority, err := pki.Load(pair.Certificate, pair.Key, now)
	if err != nil {
		return err
	}
	serving, err := authority.Issue(pki.Request{CommonName: "credence-agent", Hosts: []string{"credence-agent.credence-system.svc"}}, now, rand.Reader)
	if err != nil {
		return err
	}
	env.Setenv("AGENT_CA", base64.StdEncoding.EncodeToString(pair.Certificate))
	env.Setenv("AGENT_CERTIFICATE", base64.StdEncoding.EncodeToString(serving.Certificate))
	return nil
}

// serveTLS starts a server for one script, and returns its URL and its certificate.
func serveTLS(env *testscript.Env, handler http.Handler) (url string, authorities []byte) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	env.Defer(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func newScriptIssuer(env *testscript.Env) (*httptest.Server, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	env.Defer(server.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256","ES256"]}`, server.URL, server.URL+"/jwks")
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "current", Algorithm: "ES256", Use: "sig"}}})
	})

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(env.WorkDir, "ca.crt"), ca, 0o600); err != nil {
		return nil, err
	}
	env.Setenv("ISSUER", server.URL)
	for variable, token := range map[string]struct {
		key    *ecdsa.PrivateKey
		keyID  string
		claims map[string]any
	}{
		"TOKEN":   {key, "current", nil},
		"EXPIRED": {key, "current", map[string]any{"exp": 1782907140}},
		"FOREIGN": {foreign, "current", nil},
		"OLD_KEY": {key, "old", nil},
		"EVERYTHING": {foreign, "old", map[string]any{
			"iss": "https://other.example", "aud": []string{"third"}, "exp": 1782907140, "nbf": 1782907800,
		}},
		"BOUND": {key, "current", map[string]any{"exp": 1782912600, "kubernetes.io": map[string]any{
			"namespace": "team", "serviceaccount": map[string]any{"name": "worker", "uid": "u"},
		}}},
		"ESCAPES": {key, "current", map[string]any{"sub": "evil\x1b[2J\u009b31m\u202e", "x": "\U000e0041"}},
	} {
		claims := map[string]any{
			"iss": server.URL, "sub": "gardener.cloud:workloadidentity:team:app:uid", "aud": []string{"one", "two"}, "jti": "id",
			"iat": 1782906900, "nbf": 1782906900, "exp": 1782910500,
		}
		maps.Copy(claims, token.claims)
		text, err := signClaims(token.key, token.keyID, claims)
		if err != nil {
			return nil, err
		}
		env.Setenv(variable, text)
	}
	return server, os.WriteFile(filepath.Join(env.WorkDir, "token"), []byte(env.Getenv("TOKEN")+"\n"), 0o600)
}

func signClaims(key *ecdsa.PrivateKey, keyID string, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", keyID))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func writeKubeconfig(env *testscript.Env, server string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
clusters:
- {name: cluster, cluster: {server: %q, certificate-authority: ca.crt}}
users:
- {name: user, user: {token: bearer}}
contexts:
- {name: main, context: {cluster: cluster, user: user, namespace: team}}
- {name: team/other, context: {cluster: cluster, user: user, namespace: elsewhere}}
`, server)
	return os.WriteFile(filepath.Join(env.WorkDir, "kubeconfig"), []byte(text), 0o600)
}

// condition knows root: whether this process may give files to others; and stock: whether make build has installed kubectl.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "stock":
		return isFile(stockKubectl), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}
