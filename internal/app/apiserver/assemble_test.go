package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// asleep holds keys that were read some time ago.
type asleep struct{ age time.Duration }

func (asleep) sign(*issuer.Config)                     {}
func (asleep) published() []identity.PublicKey         { return nil }
func (asleep) atStart() []identity.PublicKey           { return nil }
func (asleep) revoked() []keys.Compromised             { return nil }
func (asleep) unready() error                          { return errors.New("none signs") }
func (a asleep) readAt() time.Time                     { return time.Now().Add(-a.age) }
func (asleep) run(ctx context.Context, changed func()) {}
func (asleep) operator() keyring.Operator              { return keyring.Operator{} }

// A process that slept does not put back what others have taken away meanwhile.
func TestOldKeysAreNotPublished(t *testing.T) {
	for age, want := range map[time.Duration]string{
		keys.DefaultStaleness + 2*time.Second: "what is published stays",
		-time.Hour:                            "what is published stays", // a clock has jumped
		0:                                     "key",                     // none is published: it comes as far as making documents
	} {
		a := assembly{checked: checked{issuer: "https://issuer.example"}, keySource: asleep{age}}
		if _, err := a.issue(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) || (age == 0) == strings.Contains(err.Error(), "stays") {
			t.Errorf("keys that were read %s ago: %v, want %q", age, err, want)
		}
	}
}
