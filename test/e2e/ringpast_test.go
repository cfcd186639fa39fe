package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

func (p plane) tokenRefused(t *testing.T, namespace, why string) {
	t.Helper()
	eventually(t, func() error {
		return do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(http.StatusServiceUnavailable, why)
	})
}

// restart kills a component, which the plane starts again.
func (p plane) restart(t *testing.T, name string) {
	t.Helper()
	before := p.part(t, name).PID
	must(t, syscall.Kill(before, syscall.SIGKILL))
	eventually(t, func() error {
		if now := p.part(t, name).PID; now == before || now == 0 {
			return fmt.Errorf("%s has not been started again", name)
		}
		return nil
	})
}

// TestPlaneOldRingSignsNothing: after a damaged ring is whole again, a ring from before a revocation does not bring the revoked key back, and nothing is made anew
// without a request.
func TestPlaneOldRingSignsNothing(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--arg", "apiserver=--keys-refresh-interval=1s", "--arg", "controller=--keys-refresh-interval=1s")
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "team")
	t.Run("damaged", func(t *testing.T) { p.damagedRing(t, namespace) })
	eventually(t, func() error {
		if ring := p.keyRing(t); ring.Status.Settings == nil || !meta.IsStatusConditionTrue(ring.Status.Conditions, "Withdrawn") {
			return fmt.Errorf("status: %+v", ring.Status)
		}
		return nil
	})
	keysDir, backup := filepath.Join(p.Dir, "keys"), filepath.Join(t.TempDir(), "backup")
	if out, err := exec.Command("cp", "-a", keysDir, backup).CombinedOutput(); err != nil {
		t.Fatalf("back up the keys: %v %s", err, out)
	}
	restore := func() {
		t.Helper()
		// ring.json comes last, so that a ring is never seen without its keys.
		script := `find "$1" -name '*.pem' -delete; cp -a "$2"/*.pem "$1"/ && cp -a "$2"/ring.json "$1"/.restored && mv "$1"/.restored "$1"/ring.json`
		if out, err := exec.Command("sh", "-c", script, "sh", keysDir, backup).CombinedOutput(); err != nil {
			t.Fatalf("put the keys back: %v %s", err, out)
		}
	}
	stolen := key(t, p.keyRing(t), "ES256", "active").ID
	p.must(t, "", "credence", "keys", "revoke", stolen, "--reason", "leaked", "--yes", "--accept-refusals")
	token(t, p.config(t), namespace, "one", `{}`)

	restore()
	p.tokenRefused(t, namespace, "the stored ring of keys is older than what is known of it")
	eventually(t, func() error {
		ring := p.keyRing(t)
		ready := meta.FindStatusCondition(ring.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != "RingSuperseded" {
			return fmt.Errorf("condition %+v", ready)
		}
		if len(ring.Status.Revoked) != 1 || ring.Status.Revoked[0].ID != stolen {
			return fmt.Errorf("the revocation is forgotten: %+v", ring.Status.Revoked)
		}
		return nil
	})
	jwks := func() string {
		return p.must(t, "", "kubectl", "get", "configmap", "credence-discovery", "-n", "credence-system", "-o", "jsonpath={.data.jwks\\.json}")
	}
	if strings.Contains(jwks(), stolen) {
		t.Error("the revoked key is published again")
	}
	if out, code := p.run(t, "credence", "keys", "initialize", "--reason", "a drill", "--dry-run"); code != 0 || !strings.Contains(out, stolen) {
		t.Errorf("dry run: %d %s", code, out)
	}
	p.must(t, "", "credence", "keys", "initialize", "--accept-loss", "--reason", "a drill")
	eventually(t, func() error {
		if got := do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)); got.Code != 201 && !strings.Contains(string(got.Body), "no active ES256 key") {
			return fmt.Errorf("a token: %d %s", got.Code, got.Body)
		}
		return nil
	})
	if strings.Contains(jwks(), stolen) {
		t.Error("the revoked key is published again")
	}
	if out, code := p.run(t, "credence", "keys", "initialize", "--accept-loss", "--reason", "again"); code != 1 || !strings.Contains(out, "there is nothing to initialize") {
		t.Errorf("again: %d %s", code, out)
	}

	// No ring at all, across a start of the API server. The lost keys were published before: a key that only a running process has seen
	// needs consent once more.
	eventually(t, func() error {
		stored, err := os.ReadFile(filepath.Join(keysDir, "ring.json"))
		if err != nil {
			return err
		}
		var ring struct{ Keys []struct{ Kid string } }
		if err := json.Unmarshal(stored, &ring); err != nil {
			return err
		}
		published, status := jwks(), p.keyRing(t).Status.Keys
		for _, key := range ring.Keys {
			if !strings.Contains(published, key.Kid) || !slices.ContainsFunc(status, func(k identityv1alpha1.KeyStatus) bool { return k.ID == key.Kid }) {
				return fmt.Errorf("key %s is not published yet", key.Kid)
			}
		}
		return nil
	})
	must(t, os.Remove(filepath.Join(keysDir, "ring.json")))
	p.tokenRefused(t, namespace, "damaged or gone")
	p.restart(t, "apiserver")
	p.tokenRefused(t, namespace, "the stored ring of keys")
	if _, err := os.Stat(filepath.Join(keysDir, "ring.json")); !os.IsNotExist(err) {
		t.Errorf("keys were made anew: %v", err)
	}
	p.must(t, "", "credence", "keys", "initialize", "--accept-loss", "--reason", "the keys are lost")
	eventually(t, func() error {
		return do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(201)
	})
	if strings.Contains(jwks(), stolen) {
		t.Error("the revoked key is published again")
	}
}

// damagedRing: nothing is signed with a ring that can not be read, and relying parties notice nothing.
func (p plane) damagedRing(t *testing.T, namespace string) {
	issued := token(t, p.config(t), namespace, "one", `{}`).Status.Token
	path := filepath.Join(p.Dir, "keys", "ring.json")
	good := need(os.ReadFile(path))(t)
	must(t, os.WriteFile(path, []byte(strings.Replace(string(good), `"active"`, `"actice"`, 1)), 0o600))
	eventually(t, func() error {
		return do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(503)
	})
	eventually(t, func() error {
		return do(t, p.direct(t), "GET", "/readyz?verbose", "", "").is(500, "[-]signing-keys failed")
	})
	p.must(t, "", "kubectl", "wait", "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=RingUnusable", "keyring/workload-identities", "--timeout=5m")
	for _, log := range []string{"apiserver", "controller"} {
		eventually(t, func() error {
			content, err := os.ReadFile(filepath.Join(p.Dir, "logs", log+".log"))
			if err != nil || !strings.Contains(string(content), "actice") {
				return fmt.Errorf("the log of the %s does not name the wrong field: %v", log, err)
			}
			return nil
		})
	}
	if out, stderr, code := p.command(t, issued, "credence", "token", "verify", "-", "--ca-file", p.CAFile); code != 0 {
		t.Errorf("a token that was issued before: %d %s%s", code, out, stderr)
	}
	must(t, os.WriteFile(path, good, 0o600))
	eventually(t, func() error {
		if got := do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)); got.Code != 201 {
			return fmt.Errorf("a token with a mended ring: %d %s", got.Code, got.Body)
		}
		return do(t, p.direct(t), "GET", "/readyz", "", "").is(200)
	})
}
