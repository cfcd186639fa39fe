package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/credence-id/credence/internal/apiserver/clusters"
)

func buildHandlerChain(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(noStore(clusters.WithAgentVersion(checkBodies(apiHandler, config.Serializer))), config)
	if proxy := config.Authentication.RequestHeaderConfig; proxy != nil {
		chain = untilTrusted(proxy.CAContentProvider, chain)
	}
	return growStack(chain)
}

// untilTrusted answers 503 until the CA of kube-apiserver's front proxy is known. The generic server listens a moment
// earlier, and would treat every caller as an anonymous one until then: an inexplicable refusal.
func untilTrusted(ca dynamiccertificates.CAContentProvider, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := ca.VerifyOptions(); !ok {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "starting: the certificate authority of the front proxy is not loaded yet", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// noStore keeps answers that hold a token, or other credentials, out of every cache (RFC 6749, section 5.1).
func noStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && givesCredentials(info.Resource, info.Subresource) {
			w.Header().Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	})
}
