package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func buildHandlerChain(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
	return genericapiserver.DefaultBuildHandlerChain(noStore(apiHandler), config)
}

// noStore keeps answers that hold a token out of every cache (RFC 6749, section 5.1).
func noStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.Resource == "workloadidentities" && info.Subresource == "token" {
			w.Header().Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	})
}
