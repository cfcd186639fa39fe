package membership

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/delivery/failures"
)

const (
	// lookEvery is how often tokens are looked at. A request that fails is made again at the next look.
	lookEvery = 5 * time.Minute
	// Suffix ends the names of files and keys with tokens.
	Suffix = ".token"
)

// Accounts requests tokens of the service accounts of joined clusters.
type Accounts interface {
	CreateToken(ctx context.Context, account string, request *authenticationv1.TokenRequest, options metav1.CreateOptions) (*authenticationv1.TokenRequest, error)
}

// Store is where the tokens are, each under a name with Suffix.
type Store interface {
	Tokens(ctx context.Context) (map[string]string, error)
	Replace(ctx context.Context, name, old, new string) error
}

// Keeper renews the tokens of a store: those of the agent itself and of the webhook beside it.
type Keeper struct {
	Accounts Accounts
	Store    Store
	Clock    clock.Clock
	Log      *slog.Logger
}

// Run renews tokens until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		k.look(ctx)
		select {
		case <-k.Clock.After(lookEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// look renews the tokens that are due.
func (k *Keeper) look(ctx context.Context) {
	tokens, err := k.Store.Tokens(ctx)
	if err != nil {
		k.Log.WarnContext(ctx, "the credentials of the identity cluster can't be read", "err", err)
	}
	for name, token := range tokens {
		if err := k.renew(ctx, name, token); err != nil {
			k.Log.WarnContext(ctx, "a credential of the identity cluster was not renewed; it is tried again", "name", name, "err", err)
		}
	}
}

func (k *Keeper) renew(ctx context.Context, name, old string) error {
	token, err := Parse(old)
	if err != nil || !token.Due(k.Clock.Now()) {
		return err
	}
	answer, err := k.Accounts.CreateToken(ctx, token.Account, Request(token.Secret.Name, token.SecretUID), metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w", failures.Rejoin(token.Secret.Name, ""), err)
	case err != nil:
		return fmt.Errorf("request a token of service account %s, whose token expires at %s; after that the cluster has to join again: %w", token.Account, token.Expires.UTC().Format(time.RFC3339), err)
	}
	if err := k.Store.Replace(ctx, name, old, answer.Status.Token); err != nil {
		return err
	}
	k.Log.InfoContext(ctx, "a credential of the identity cluster was renewed", "name", name, "account", token.Account, "expires", answer.Status.ExpirationTimestamp.UTC())
	return nil
}
