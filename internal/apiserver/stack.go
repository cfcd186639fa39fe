package apiserver

import (
	"context"
	"net/http"

	"github.com/credence-id/credence/internal/stack"
	"k8s.io/apiserver/pkg/admission"
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

// GrowStackOfWrites grows the stack of the goroutine that the API machinery changes objects on. Admission is the first that runs there.
func GrowStackOfWrites(next admission.Interface) admission.Interface { return growing{next} }

type growing struct{ admission.Interface }

// Admit implements admission.MutationInterface.
func (g growing) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	stack.Grow()
	if next, ok := g.Interface.(admission.MutationInterface); ok {
		return next.Admit(ctx, a, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (g growing) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := g.Interface.(admission.ValidationInterface); ok {
		return next.Validate(ctx, a, o)
	}
	return nil
}
