package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// In a storage that was lost nothing is created, and all else is served.
func TestNothingIsCreatedInALostStorage(t *testing.T) {
	why := "the storage is empty"
	b := &beginning{}
	served := b.guard(func(next http.Handler, _ *genericapiserver.Config) http.Handler { return next })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}), nil)
	ask := func(verb, resource string) *httptest.ResponseRecorder {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: verb, Resource: resource}
		asked := httptest.NewRequest(http.MethodPost, "/", nil)
		got := httptest.NewRecorder()
		served.ServeHTTP(got, asked.WithContext(request.WithRequestInfo(context.Background(), info)))
		return got
	}
	if got := ask("create", "workloadidentities"); got.Code != http.StatusCreated {
		t.Errorf("with a storage: %d", got.Code)
	}
	b.empty.Store(&why)
	if got := ask("create", "workloadidentities"); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `"message":"the storage is empty"`) {
		t.Errorf("without: %d %s", got.Code, got.Body)
	}
	for _, other := range [][2]string{{"list", "workloadidentities"}, {"create", "keyrings"}} {
		if got := ask(other[0], other[1]); got.Code != http.StatusCreated {
			t.Errorf("%v without a storage: %d", other, got.Code)
		}
	}
}
