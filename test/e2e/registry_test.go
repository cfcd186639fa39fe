package e2e_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/credence-id/credence/test/testkit"
)

// privateRegistry is the registry of the distribution project on this machine. Its token server takes tokens of the plane as passwords, which
// it verifies through discovery.
type privateRegistry struct {
	address string
	server  string // URL of the token server
	signer  *testkit.Certificate

	mu        sync.Mutex
	verifier  *oidc.IDTokenVerifier   // nil: nothing is pulled yet
	pullers   map[string]string       // repositories, by the subjects that may pull them
	tokens    []string                // that came as passwords
	exchanged map[string]string       // subjects, by the passwords that their tokens were exchanged for
	broken    map[string]brokenAnswer // paths of the token server that have one answer for all requests
}

// brokenAnswer is one that is not that of a token server.
type brokenAnswer struct {
	code int
	body string
}

func (b brokenAnswer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(b.code)
	_, _ = io.WriteString(w, b.body)
}

const registryService = "private images"

// startRegistry starts the registry, which ends with the test.
func startRegistry(t *testing.T) *privateRegistry {
	t.Helper()
	ports := need(testkit.FreePorts(1))(t)
	r := &privateRegistry{
		address: fmt.Sprintf("127.0.0.1:%d", ports),
		signer:  testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil),
		pullers: map[string]string{}, exchanged: map[string]string{},
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.server = server.URL
	dir := t.TempDir()
	trusted, config := filepath.Join(dir, "trusted.pem"), filepath.Join(dir, "config.json")
	content := jsonOf(t, map[string]any{
		"version": "0.1", "log": map[string]any{"level": "warn"}, "storage": map[string]any{"inmemory": map[string]any{}},
		"http": map[string]any{"addr": r.address},
		"auth": map[string]any{"token": map[string]any{"realm": server.URL + "/token", "service": registryService, "issuer": "e2e", "rootcertbundle": trusted}},
	})
	must(t, errors.Join(os.WriteFile(trusted, r.signer.PEM(), 0o600), os.WriteFile(config, content, 0o600)))
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), program("registry"), "serve", config)
	command.Stdout, command.Stderr = &output, &output
	command.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := command.Start(); err != nil {
		t.Fatalf("%v; make test builds it: cd test/e2e/registry && go build -o ../../../bin/ github.com/distribution/distribution/v3/cmd/registry", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			lines := strings.Split(output.String(), "\n")
			t.Logf("the last lines of the registry: %s", strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	})
	eventually(t, func() error {
		answer, err := http.Get("http://" + r.address + "/v2/")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("the registry answers %d without a token", answer.StatusCode)
		}
		return nil
	})
	return r
}

// trust has the token server take tokens of the plane's issuer.
func (r *privateRegistry) trust(t *testing.T, p plane) {
	t.Helper()
	ctx := oidc.ClientContext(context.WithoutCancel(t.Context()), p.publicClient(t))
	provider := need(oidc.NewProvider(ctx, p.Issuer))(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifier = provider.Verifier(&oidc.Config{ClientID: "registry", SupportedSigningAlgs: []string{"RS256", "ES256"}})
}

// answers has a path of the token server answer all requests alike; nil: as it should.
func (r *privateRegistry) answers(broken map[string]brokenAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = broken
}

// letPull lets a subject pull a repository.
func (r *privateRegistry) letPull(subject, repository string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pullers[subject] = repository
}

// passwords are those that the token server was given.
func (r *privateRegistry) passwords() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tokens)
}

// ServeHTTP is the token server, by the specification of the distribution project: a user name and a password in a header, and scopes.
// containerd tries OAuth by POST first, which this one does not know.
func (r *privateRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	broken, is := r.broken[request.URL.Path]
	r.mu.Unlock()
	if is {
		broken.ServeHTTP(w, request)
		return
	}
	if request.URL.Path == "/exchange" {
		r.exchange(w, request)
		return
	}
	if request.Method != http.MethodGet {
		http.Error(w, "GET alone", http.StatusMethodNotAllowed)
		return
	}
	username, password, given := request.BasicAuth()
	var access []any
	if given {
		subject, err := r.subject(request.Context(), password)
		if err != nil || username != "credence" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		r.mu.Lock()
		repository := r.pullers[subject]
		r.mu.Unlock()
		for _, scope := range request.URL.Query()["scope"] {
			if scope == "repository:"+repository+":pull" {
				access = append(access, map[string]any{"type": "repository", "name": repository, "actions": []string{"pull"}})
			}
		}
	}
	granted, err := r.grant(access)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": granted})
}

// subject is that of a password: a token, or what one was exchanged for.
func (r *privateRegistry) subject(ctx context.Context, password string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if subject, known := r.exchanged[password]; known {
		return subject, nil
	}
	if r.verifier == nil {
		return "", errors.New("there is no plane yet")
	}
	token, err := r.verifier.Verify(ctx, password)
	if err != nil {
		return "", err
	}
	r.tokens = append(r.tokens, password)
	return token.Subject, nil
}

// exchange is a token endpoint of RFC 8693, whose tokens are passwords of the token server.
func (r *privateRegistry) exchange(w http.ResponseWriter, request *http.Request) {
	subject, err := r.subject(request.Context(), request.PostFormValue("subject_token"))
	if err != nil || request.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" || request.PostFormValue("audience") != registryService {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": fmt.Sprint("this token is not good: ", err)})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	password := fmt.Sprintf("exchanged-%d", len(r.exchanged))
	r.exchanged[password] = subject
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": password, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "N_A", "expires_in": 120})
}

// mayPull reports whether a registry lets a user with a password have the manifest of an image, as a runtime does: by the token server.
func (r *privateRegistry) mayPull(t *testing.T, repository, username, password string) bool {
	t.Helper()
	get := func(to string, set func(*http.Request)) (int, []byte) {
		request := need(http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil))(t)
		set(request)
		answer := need(http.DefaultClient.Do(request))(t)
		defer answer.Body.Close()
		body := need(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, body
	}
	query := url.Values{"service": {registryService}, "scope": {"repository:" + repository + ":pull"}}
	status, body := get(r.server+"/token?"+query.Encode(), func(request *http.Request) { request.SetBasicAuth(username, password) })
	if status != http.StatusOK {
		return false
	}
	var granted struct{ Token string }
	must(t, json.Unmarshal(body, &granted))
	status, _ = get("http://"+r.address+"/v2/"+repository+"/manifests/v1", func(request *http.Request) {
		request.Header.Set("Authorization", "Bearer "+granted.Token)
		request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	})
	return status == http.StatusOK
}

// grant is a token of the token server for the registry.
func (r *privateRegistry) grant(access []any) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("x5c", []string{base64.StdEncoding.EncodeToString(r.signer.Raw)})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: r.signer.Key}, options)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(map[string]any{
		"iss": "e2e", "sub": "e2e", "aud": registryService, "jti": fmt.Sprint(now.UnixNano()),
		"iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(), "access": access,
	}).Serialize()
}

// push puts an image into a repository, with the tag v1.
func (r *privateRegistry) push(t *testing.T, repository string, image ociImage) {
	t.Helper()
	token := need(r.grant([]any{map[string]any{"type": "repository", "name": repository, "actions": []string{"pull", "push"}}}))(t)
	send := func(method, path, contentType string, body []byte) http.Header {
		t.Helper()
		if !strings.Contains(path, "://") {
			path = "http://" + r.address + "/v2/" + repository + path
		}
		request := need(http.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body)))(t)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", contentType)
		answer := need(http.DefaultClient.Do(request))(t)
		defer answer.Body.Close()
		if answer.StatusCode >= 300 {
			t.Fatalf("%s %s: %d", method, path, answer.StatusCode)
		}
		return answer.Header
	}
	manifest := image.manifest["digest"].(string)
	for digest, content := range image.blobs {
		if digest == manifest {
			continue
		}
		upload := need(url.Parse(send(http.MethodPost, "/blobs/uploads/", "", nil).Get("Location")))(t)
		query := upload.Query()
		query.Set("digest", digest)
		upload.RawQuery = query.Encode()
		send(http.MethodPut, upload.String(), "application/octet-stream", content)
	}
	send(http.MethodPut, "/manifests/v1", image.manifest["mediaType"].(string), image.blobs[manifest])
}
