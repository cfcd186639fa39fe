package membership

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/atomicfile"
)

const (
	// lookEvery is how often tokens are looked at. A request that fails is made again at the next look.
	lookEvery = 5 * time.Minute
	// Suffix ends the names of files with tokens.
	Suffix = ".token"
)

// Accounts requests tokens of the service accounts of joined clusters.
type Accounts interface {
	CreateToken(ctx context.Context, account string, request *authenticationv1.TokenRequest, options metav1.CreateOptions) (*authenticationv1.TokenRequest, error)
}

// Keeper renews the tokens in a folder: those of the agent itself and of the webhook beside it.
type Keeper struct {
	Accounts Accounts
	Folder   string
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
	files, err := filepath.Glob(filepath.Join(k.Folder, "*"+Suffix))
	if err != nil {
		k.Log.WarnContext(ctx, "the credentials of the identity cluster can't be found", "folder", k.Folder, "err", err)
	}
	for _, file := range files {
		if err := k.renew(ctx, file); err != nil {
			k.Log.WarnContext(ctx, "a credential of the identity cluster was not renewed; it is tried again", "file", file, "err", err)
		}
	}
}

func (k *Keeper) renew(ctx context.Context, file string) error {
	token, err := Read(file)
	if err != nil || !token.Due(k.Clock.Now()) {
		return err
	}
	answer, err := k.Accounts.CreateToken(ctx, token.Account, Request(token.Secret.Name, token.SecretUID), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token of service account %s, whose token expires at %s; after that the cluster has to join again: %w", token.Account, token.Expires.UTC().Format(time.RFC3339), err)
	}
	if err := atomicfile.Replace(file, []byte(answer.Status.Token), 0o600); err != nil {
		return err
	}
	k.Log.InfoContext(ctx, "a credential of the identity cluster was renewed", "file", file, "account", token.Account, "expires", answer.Status.ExpirationTimestamp.UTC())
	return nil
}
