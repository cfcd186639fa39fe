package apiserver

import (
	"net/http"

	"github.com/credence-id/credence/internal/stack"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// growStack grows the stack of the goroutine that serves a request, before the filters.
func growStack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stack.Grow()
		next.ServeHTTP(w, r)
	})
}

// GrowStack grows the stack of the goroutine that the filters behind the time limit run in. Authentication is the first of them.
func GrowStack(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		stack.Grow()
		return next.AuthenticateRequest(r)
	})
}
