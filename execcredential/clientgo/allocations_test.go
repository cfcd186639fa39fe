package clientgo_test

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// A request whose credential is there costs a copy of the request and of its header, which the contract of http.RoundTripper requires, and
// no allocation more.
func TestCachedRequestAllocatesTheCopyAlone(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{})
	config := adapted(t, pool, &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: execProvider(exectest.NewProvider(t, token))})
	stubbed, err := rest.HTTPWrappersForConfig(config, stub{ok})
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1:1/api", nil)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "test")
	authorization := []string{"Bearer abc"}
	var answer *http.Response // with the copy in it, so that both are on the heap
	byHand := func() {
		copied := new(http.Request)
		*copied = *request
		copied.Header = make(http.Header, len(request.Header)+1)
		for name, values := range request.Header {
			copied.Header[name] = values
		}
		copied.Header["Authorization"] = authorization
		answer, _ = stub{ok}.RoundTrip(copied)
	}
	ours := testing.AllocsPerRun(1000, func() {
		if _, err := stubbed.RoundTrip(request); err != nil {
			t.Error(err)
		}
	})
	if want := testing.AllocsPerRun(1000, byHand); ours > want {
		t.Errorf("%v allocations for a request, and %v for a copy by hand, answered by %d", ours, want, answer.StatusCode)
	}
}
