package e2e_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
)

// bucket serves copies of the documents, as they were uploaded last.
type bucket struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content)
}

// upload copies what the plane's discovery server serves.
func (b *bucket) upload(t *testing.T, p plane) {
	t.Helper()
	files := map[string][]byte{}
	for path, url := range map[string]string{
		"/.well-known/openid-configuration": p.Issuer + "/.well-known/openid-configuration", "/jwks": p.JWKS,
	} {
		got := need(p.publicClient(t).Get(url))(t)
		content, err := io.ReadAll(got.Body)
		got.Body.Close()
		must(t, err)
		files[path] = content
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = files
}

// A key that the public URL does not show is never used, and its time does not begin before it does.
func TestPlanePublicURLHoldsBackAKey(t *testing.T) {
	withPlane(t)
	public := &bucket{}
	server := httptest.NewTLSServer(public)
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "bucket.crt")
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	p := newPlane(t, "--arg", "controller=--publish-check-url="+server.URL, "--arg", "controller=--publish-check-ca-file="+authority,
		"--arg", "controller=--keys-staleness=3s", "--arg", "controller=--keys-refresh-interval=1s", "--arg", "apiserver=--keys-refresh-interval=1s")
	eventually(t, func() error {
		if documents := p.keyRing(t).Status.Documents; documents == nil || len(documents.Keys) != 0 || !strings.Contains(documents.Message, "404") {
			return fmt.Errorf("an empty bucket: %+v", documents)
		}
		return nil
	})
	public.upload(t, p)
	eventually(t, func() error {
		if documents := p.keyRing(t).Status.Documents; documents == nil || len(documents.Keys) != 4 || documents.From != server.URL {
			return fmt.Errorf("after the first upload: %+v", documents)
		}
		return nil
	})
	must(t, rotate(t, p.config(t), "", `{"algorithm":"ES256","now":true,"acceptRefusals":true,"reason":"a test"}`).is(201), "rotate")
	eventually(t, func() error {
		ring := p.keyRing(t)
		rotating := meta.FindStatusCondition(ring.Status.Conditions, "Rotating")
		if len(ring.Status.Keys) != 5 || rotating == nil || rotating.Status != "False" || rotating.Reason != "DocumentsBehind" {
			return fmt.Errorf("the bucket does not show the new spare: %+v", ring.Status.Conditions)
		}
		return nil
	})
	if spare := key(t, p.keyRing(t), "ES256", "spare"); spare.PublishedAt != nil {
		t.Errorf("the spare is published since %s, though the bucket does not show it", spare.PublishedAt)
	}
	public.upload(t, p)
	eventually(t, func() error {
		ring := p.keyRing(t)
		if spare := key(t, ring, "ES256", "spare"); spare.PublishedAt == nil || !meta.IsStatusConditionTrue(ring.Status.Conditions, "Rotating") {
			return fmt.Errorf("after the second upload: %+v, %+v", spare, ring.Status.Conditions)
		}
		return nil
	})
}
