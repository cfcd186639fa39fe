package workloadidentities_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	ids "github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

// Each request has the pod's credentials alone, whatever those of the configuration are.
func TestTokensByPodsOwn(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testkit.Expect(t, err)
		if r.Method != http.MethodPost || r.URL.Path != "/apis/authentication.gardener.cloud/v1alpha1/namespaces/fruit/workloadidentities/banana/selftoken" {
			http.NotFound(w, r)
			return
		}
		var request v1alpha1.TokenRequest
		if err := json.Unmarshal(body, &request); err != nil || request.Kind != "TokenRequest" {
			t.Errorf("body %s, %v", body, err)
		}
		request.Status = v1alpha1.TokenRequestStatus{Token: "for " + r.Header.Get("Authorization"), TargetSystem: &v1alpha1.TargetSystem{Type: "aws"}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(request)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, BearerToken: "the node's", Username: "admin", Password: "x", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	tokens := workloadidentities.NewSelfTokens(config)
	for _, pod := range []string{"pod-1", "pod-2"} {
		got, err := tokens.Token(t.Context(), types.NamespacedName{Namespace: "fruit", Name: "banana"}, ids.NewToken(pod))
		if err != nil || got.Token != "for Bearer "+pod || got.TargetSystem == nil {
			t.Errorf("%s: %+v %v", pod, got, err)
		}
	}
	// That of a server which does not know the subresource.
	_, err := tokens.Token(t.Context(), types.NamespacedName{Namespace: "fruit", Name: "cherry"}, ids.NewToken("pod"))
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
