package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestDiscoveryServer(t *testing.T) {
	inTurn(t)
	client := shared.publicClient(t)
	ask := func(method, url string, header http.Header) *http.Response {
		t.Helper()
		request := need(http.NewRequestWithContext(t.Context(), method, url, nil))(t)
		if header != nil {
			request.Header = header
		}
		got := need(client.Do(request))(t)
		t.Cleanup(func() { _ = got.Body.Close() })
		return got
	}
	for url, contentType := range map[string]string{
		shared.Issuer + "/.well-known/openid-configuration": "application/json",
		shared.JWKS: "application/jwk-set+json",
	} {
		got := ask("GET", url, nil)
		if got.StatusCode != 200 || got.Header.Get("Content-Type") != contentType {
			t.Errorf("GET %s: %d, %s", url, got.StatusCode, got.Header.Get("Content-Type"))
		}
		if cache := got.Header.Get("Cache-Control"); !strings.HasPrefix(cache, "public, max-age=") {
			t.Errorf("%s: Cache-Control %q", url, cache)
		}
		if got.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: no HSTS", url)
		}
		etag := got.Header.Get("ETag")
		if again := ask("GET", url, http.Header{"If-None-Match": {etag}}); etag == "" || again.StatusCode != 304 {
			t.Errorf("%s with ETag %q: %d, want 304", url, etag, again.StatusCode)
		}
		if head := ask("HEAD", url, nil); head.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", url, head.StatusCode)
		}
		post := ask("POST", url, nil)
		if allow := post.Header.Get("Allow"); post.StatusCode != 405 || !strings.Contains(allow, "GET") || !strings.Contains(allow, "HEAD") {
			t.Errorf("POST %s: %d, Allow %q", url, post.StatusCode, allow)
		}
		if slash := ask("GET", url+"/", nil); slash.StatusCode != 404 {
			t.Errorf("GET %s/: %d, want 404", url, slash.StatusCode)
		}
	}
}

func TestKubectlPlugin(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	issued := strings.TrimSpace(shared.must(t, "", "kubectl", "credence", "token", "create", "one", "-n", namespace, "--duration", "20m"))
	if strings.Count(issued, ".") != 2 || strings.ContainsAny(issued, " \n") {
		t.Fatalf("token create printed more than a token, or less: %d characters", len(issued))
	}
	stdout, _, code := shared.command(t, issued, "credence", "token", "verify", "-", "--issuer", shared.Issuer, "--audience", "a", "--ca-file", shared.CAFile)
	if code != 0 || strings.Contains(stdout, issued) {
		t.Errorf("verify: exit code %d\n%s", code, stdout)
	}
	stdout, stderr, code := shared.command(t, issued, "credence", "token", "verify", "-", "--issuer", shared.Issuer, "--audience", "b", "--ca-file", shared.CAFile)
	if code != 1 || !strings.Contains(stdout+stderr, "audience") {
		t.Errorf("verify for another audience: exit code %d\n%s%s", code, stdout, stderr)
	}
}
