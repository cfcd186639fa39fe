package keeper

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/test/testkit"
)

// api holds Secrets and one webhook configuration, and has what was written in its order.
type api struct {
	secrets       map[string]*corev1.Secret
	configuration map[string]any
	unreadable    string // the end of a path that is answered with 500
	written       []string
}

const configurationPath = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/credence-webhook"

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if a.unreadable != "" && name == a.unreadable {
		fail(w, http.StatusInternalServerError)
		return
	}
	body, _ := io.ReadAll(r.Body)
	isSecret := strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/credence-system/secrets")
	var answer any
	switch {
	case r.Method == http.MethodGet && r.URL.Path == configurationPath:
		answer = a.configuration
	case r.Method == http.MethodGet && isSecret && a.secrets[name] != nil:
		answer = a.secrets[name]
	case r.Method == http.MethodGet:
		fail(w, http.StatusNotFound)
		return
	case isSecret:
		secret := &corev1.Secret{}
		if err := json.Unmarshal(body, secret); err != nil {
			panic(err)
		}
		a.written = append(a.written, secret.Name)
		a.secrets[secret.Name], answer = secret, secret
	default:
		a.written = append(a.written, name)
		if err := json.Unmarshal(body, &a.configuration); err != nil {
			panic(err)
		}
		answer = a.configuration
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusInternalServerError: "InternalError"}[code]
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
}

func newKeeper(t *testing.T, a *api) *Keeper {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.secrets = map[string]*corev1.Secret{}
	a.configuration = map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "credence-webhook"},
		"webhooks": []any{map[string]any{"name": "x", "clientConfig": map[string]any{"url": "https://192.0.2.1"}}},
	}
	wanted := testkit.Need(certificates.All([]string{"credence-webhook"}, certificates.Hosts{Namespace: "credence-system", ClusterDomain: "cluster.local"}, time.Hour))(t)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	k := testkit.Need(New(Needs{
		Namespace: "credence-system", Secrets: corev1client.NewForConfigOrDie(config).Secrets("credence-system"), Objects: dynamic.NewForConfigOrDie(config),
		Events: &record.FakeRecorder{}, Wanted: wanted, Settings: certificates.Settings{AuthorityLifetime: 3 * time.Hour, Overlap: time.Minute},
		Now: func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }, Random: rand.Reader,
		Recorder: NewRecorder(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	}))(t)
	return k
}

func TestABundleIsWrittenBeforeACertificate(t *testing.T) {
	a := &api{}
	k := newKeeper(t, a)
	k.leads.Store(true)
	testkit.Must(t, testkit.Err(k.pass(t.Context())))
	if want := []string{"credence-ca", "credence-webhook", "credence-webhook-tls"}; !slices.Equal(a.written, want) {
		t.Errorf("written: %v, want %v", a.written, want)
	}
	testkit.Expect(t, k.Ready())
}

// A Secret that cannot be read is not a missing one, and a replica that does not lead writes nothing.
func TestNothingIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		leads      bool
		unreadable string
		want       string
	}{
		"without an answer about the authority": {true, "credence-ca", "read Secret credence-ca"},
		"without an answer about a certificate": {true, "credence-webhook-tls", "read Secret credence-webhook-tls"},
		"by a replica that does not lead":       {false, "", "the replica that leads has something to do: make an authority: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{unreadable: test.unreadable}
			k := newKeeper(t, a)
			k.leads.Store(test.leads)
			_, err := k.pass(t.Context())
			if err == nil {
				err = k.Ready()
			}
			if len(a.written) > 0 || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("written: %v; error %v, want %q", a.written, err, test.want)
			}
		})
	}
}

// An object that cannot be read keeps no certificate from being made that is missing, and is an error.
func TestAnUnreadableObjectIsAnError(t *testing.T) {
	a := &api{unreadable: "credence-webhook"}
	k := newKeeper(t, a)
	k.leads.Store(true)
	_, err := k.pass(t.Context())
	if want := []string{"credence-ca", "credence-webhook-tls"}; !slices.Equal(a.written, want) || err == nil || !strings.Contains(err.Error(), "read mutatingwebhookconfigurations credence-webhook") {
		t.Errorf("written: %v, want %v; error %v", a.written, want, err)
	}
}
