package workloadidentity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// Connect opens the way to the cluster, for one request.
type Connect func(kubeconfig.Access, credential.Request) (API, error)

// API is the part of a cluster's API that issues tokens. Its errors are classified: credential.ErrRefused, or an outage.
type API interface {
	// UID returns the uid of an object as it is now.
	UID(ctx context.Context, namespace string, object Object) (string, error)
	// CreateToken requests a token of a WorkloadIdentity.
	CreateToken(ctx context.Context, namespace, name string, request TokenRequest) (Token, error)
}

// TokenRequest is the request to the API.
type TokenRequest struct {
	Duration time.Duration // 0: the server's default
	Object   *Object       // nil: none
	UID      string        // of Object
}

// Token is the API's answer.
type Token struct {
	Token   credential.Secret
	Expires time.Time
}

// Obtain implements credential.Source.
func (s *Source) Obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	token, err := s.token(ctx, request)
	if err != nil {
		return credential.Credential{}, nil, fmt.Errorf("get a token of WorkloadIdentity %s/%s: %w", s.settings.Namespace, s.settings.Name, err)
	}
	return credential.Credential{Token: token.Token, Expires: token.Expires}, nil, nil
}

func (s *Source) token(ctx context.Context, request credential.Request) (Token, error) {
	api, err := s.connect(s.access, request)
	if err != nil {
		return Token{}, err
	}
	wanted := TokenRequest{Duration: s.settings.Duration, Object: s.object}
	if s.object != nil {
		// A token is bound to the object that exists now: a namesake created later has another uid.
		if wanted.UID, err = api.UID(ctx, s.settings.Namespace, *s.object); err != nil {
			return Token{}, fmt.Errorf("look up %s %s: %w", s.object.Kind, s.object.Name, err)
		}
	}
	token, err := api.CreateToken(ctx, s.settings.Namespace, s.settings.Name, wanted)
	switch {
	case err != nil:
		return Token{}, err
	case token.Token.IsZero():
		return Token{}, errors.New("the server's answer holds no token")
	case token.Expires.IsZero():
		// A client would use it for as long as it runs.
		return Token{}, errors.New("the server's answer lacks the token's expiry")
	}
	return token, nil
}
