package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// api is an HTTP server with the answers of a test, which keeps the requests.
type api struct {
	*Client
	mu    sync.Mutex
	asked []string
	body  map[string]string
}

func newAPI(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body []byte)) *api {
	t.Helper()
	a := &api{body: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testkit.Expect(t, err)
		a.mu.Lock()
		a.asked = append(a.asked, r.Method+" "+r.URL.Path)
		a.body[r.Method+" "+r.URL.Path] = string(body)
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, body)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{}}]}`, server.URL)
	testkit.Must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	client := testkit.Need(New(kubeconfig))(t)
	a.Client = client
	return a
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d,"message":"%s, by the test"}`, reason, code, reason)
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func TestApplyMakesNamespacesFirstAndGuessesPaths(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if r.URL.Query().Get("fieldManager") != "credence-up" || r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
			t.Errorf("%s is not a server-side apply of credence-up", r.URL)
		}
		_, _ = w.Write(body)
	})
	testkit.Must(t, a.Apply(t.Context(), []*unstructured.Unstructured{
		object("v1", "ServiceAccount", "s", "a"),
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "credence:b"),
		object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "c"),
		object("v1", "Namespace", "", "s"),
	}))
	want := []string{
		"PATCH /api/v1/namespaces/s",
		"PATCH /api/v1/namespaces/s/serviceaccounts/a",
		"PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/credence:b",
		"PATCH /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/c",
	}
	if diff := cmp.Diff(want, a.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestShippedManifestsCanBeApplied(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(w http.ResponseWriter, _ *http.Request, body []byte) { _, _ = w.Write(body) })
	objects := testkit.Need(deploy.Manifests())(t)
	testkit.Must(t, a.Apply(t.Context(), objects))
	if len(a.asked) != len(objects) || len(objects) == 0 {
		t.Errorf("%d requests for %d objects", len(a.asked), len(objects))
	}
}

func TestApplyRepeatsOnlyWhatMaySucceedLater(t *testing.T) {
	t.Parallel()
	answers := []int{503, 429, 403, 500, 200}
	a := newAPI(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		code := answers[0]
		answers = answers[1:]
		if code == 200 {
			_, _ = w.Write(body)
			return
		}
		if code == 403 { // as of a kube-apiserver that is ready, before its admission is
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"namespaces \"s\" is forbidden: not yet ready to handle request"}`))
			return
		}
		refuse(w, code, map[int]string{503: "ServiceUnavailable", 429: "TooManyRequests", 500: "InternalError"}[code])
	})
	one := []*unstructured.Unstructured{object("v1", "Namespace", "", "s")}
	testkit.Expect(t, a.Apply(t.Context(), one))
	forbidden := newAPI(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { refuse(w, 403, "Forbidden") })
	err := forbidden.Apply(t.Context(), one)
	if err == nil || !strings.Contains(err.Error(), "apply Namespace s: Forbidden, by the test") || len(forbidden.asked) != 1 {
		t.Errorf("a refusal: %v after %d requests", err, len(forbidden.asked))
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(w http.ResponseWriter, _ *http.Request, body []byte) { _, _ = w.Write(body) })
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	testkit.Must(t, a.Register(t.Context(), Registration{Port: 4711, CA: []byte("PEM")}, at))
	got := map[string]any{}
	for _, path := range []string{"PATCH /api/v1/namespaces/credence-system/services/credence-apiserver", "PATCH /apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.authentication.gardener.cloud", "PATCH /apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.identity.credence.dev"} {
		var sent map[string]any
		if err := json.Unmarshal([]byte(a.body[path]), &sent); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got[path[strings.LastIndex(path, "/")+1:]] = sent["spec"]
		if annotations, _, _ := unstructured.NestedString(sent, "metadata", "annotations", touchAnnotation); strings.Contains(path, "apiservices") && annotations != "2026-01-02T03:04:05.000000006Z" {
			t.Errorf("registered at %q", annotations)
		}
	}
	want := map[string]any{
		"credence-apiserver": map[string]any{
			"type": "ExternalName", "externalName": "localhost",
			"ports": []any{map[string]any{"name": "https", "protocol": "TCP", "port": 4711.0}},
		},
		"v1alpha1.authentication.gardener.cloud": map[string]any{
			"group": "authentication.gardener.cloud", "version": "v1alpha1", "groupPriorityMinimum": 1000.0, "versionPriority": 15.0,
			"caBundle": "UEVN", "service": map[string]any{"name": "credence-apiserver", "namespace": "credence-system", "port": 4711.0},
		},
		"v1alpha1.identity.credence.dev": map[string]any{
			"group": "identity.credence.dev", "version": "v1alpha1", "groupPriorityMinimum": 1000.0, "versionPriority": 15.0,
			"caBundle": "UEVN", "service": map[string]any{"name": "credence-apiserver", "namespace": "credence-system", "port": 4711.0},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		`{}`: "has not been looked at yet",
		`{"conditions":[{"type":"Other","status":"True"}]}`:                                                  "has not been looked at yet",
		`{"conditions":[{"type":"Available","status":"False","reason":"FailedCheck","message":"no route"}]}`: "FailedCheck: no route",
		`{"conditions":[{"type":"Available","status":"True"}]}`:                                              "",
	} {
		a := newAPI(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			_, _ = fmt.Fprintf(w, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"x"},"status":%s}`, status)
		})
		err := a.Available(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", status, err, want)
		}
	}
}

func TestAnnouncedIn(t *testing.T) {
	t.Parallel()
	const resource, group = `{"resource":"workloadidentities"}`, tokenGroup
	// The other group is there in any case.
	entry := func(group, version, freshness, resources string) string {
		return fmt.Sprintf(`{"items":[{"metadata":{"name":%q},"versions":[{"version":%q,"freshness":%q,"resources":[%s]}]},
			{"metadata":{"name":"identity.credence.dev"},"versions":[{"version":"v1alpha1","freshness":"Current","resources":[{"resource":"keyrings"}]}]}]}`, group, version, freshness, resources)
	}
	for name, c := range map[string]struct {
		body string
		want bool
	}{
		"current":       {entry(group, version, "Current", resource), true},
		"stale":         {entry(group, version, "Stale", resource), false},
		"empty":         {entry(group, version, "Current", ""), false},
		"one group":     {`{"items":[{"metadata":{"name":"authentication.gardener.cloud"},"versions":[{"version":"v1alpha1","freshness":"Current","resources":[` + resource + `]}]}]}`, false},
		"other group":   {entry("apps", version, "Current", resource), false},
		"other version": {entry(group, "v1", "Current", resource), false},
		"nothing":       {`{}`, false},
		"no JSON":       {`<html>`, false},
	} {
		if err := announcedIn([]byte(c.body)); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzAnnounced(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"name":"authentication.gardener.cloud"},"versions":[{"version":"v1alpha1","freshness":"Current","resources":[{}]}]}]}`))
	f.Add([]byte(`{"items":[{}]}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if announcedIn(body) == nil && !json.Valid(body) {
			t.Errorf("%q announces the group", body)
		}
	})
}

// secret stands for a token; it must be in no error.
const secret = "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0.c2VjcmV0"

func TestProveRepeatsUntilItMustStopAndTellsWhy(t *testing.T) {
	t.Parallel()
	const path = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/credence-system/workloadidentities"
	for name, c := range map[string]struct{ create, token, want string }{
		"no identity": {"503", "", "create WorkloadIdentity credence-system/up-check"},
		"no token":    {"201", "403", "request a token for WorkloadIdentity credence-system/up-check"},
		"empty token": {"409", "empty", "the response has none"},
		"bad token":   {"201", "201", "is not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			tries := 0
			a := newAPI(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
				answer := c.create
				if r.URL.Path == path+"/up-check/token" {
					answer = c.token
				} else if tries++; tries == 3 {
					cancel(errors.New("enough"))
				}
				switch answer {
				case "503":
					refuse(w, 503, "ServiceUnavailable")
				case "409":
					refuse(w, 409, "AlreadyExists")
				case "403":
					refuse(w, 403, "Forbidden")
				case "empty":
					_, _ = w.Write(body)
				default:
					_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"X","metadata":{"name":"up-check"},"status":{"token":%q}}`, secret)
				}
			})
			err := a.Prove(ctx, Proof{Issuer: identity.Issuer("https://127.0.0.1:1/x"), Client: http.DefaultClient, Now: time.Now})
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Fatalf("error is %v", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "enough") {
				t.Errorf("error is %v, want %q and why it was the last try", err, c.want)
			}
		})
	}
}

// The wait ends if tokens are not issued on purpose; any other 503 passes.
func TestProveWithoutASigningKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		condition string
		signless  bool
	}{
		"revoked":      {`{"type":"Ready","status":"False","reason":"NoSigningKey"}`, true},
		"another 503":  {`{"type":"Ready","status":"True","reason":"Signing"}`, false},
		"another type": {`{"type":"Rotating","status":"False","reason":"NoSigningKey"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			tries := 0
			a := newAPI(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/token"):
					if tries++; tries == 3 {
						cancel(errors.New("enough"))
					}
					refuse(w, 503, "ServiceUnavailable")
				case strings.Contains(r.URL.Path, "keyrings"):
					_, _ = w.Write([]byte(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"KeyRing","metadata":{"name":"workload-identities"},"status":{"signing":"RS256=none","conditions":[` + c.condition + `]}}`))
				default:
					_, _ = w.Write(body)
				}
			})
			err := a.Prove(ctx, Proof{Issuer: "https://issuer.example", Now: time.Now})
			if errors.Is(err, ErrNoSigningKey) != c.signless || err == nil {
				t.Errorf("error %v after %d tries", err, tries)
			}
			if signing, err := a.WaitKeys(t.Context()); err != nil || signing != "RS256=none" {
				t.Errorf("signing %q, %v", signing, err)
			}
		})
	}
}
