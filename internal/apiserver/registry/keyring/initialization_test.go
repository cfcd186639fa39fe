package keyring

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// The answer names the algorithms of which no key signs after the keys were put back, and from when one may.
func TestAnswerNamesWhatIsUnsigned(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ring := testkit.Need(keys.Bootstrap(keys.NewPrivate, now))(t)
	active, _ := ring.Signer(identity.ES256)
	view := keys.View{Now: now.Add(time.Hour)}
	past := keys.Past{Revoked: []keys.Compromised{{ID: active.ID, Algorithm: identity.ES256, RevokedAt: now}}}
	change := testkit.Need(ring.Resume(view, past, keys.Cause{By: "jane", Reason: "a backup"}, keys.NewPrivate))(t)
	spare := ring.Keys[3]
	at := metav1.NewTime(spare.ReadyAt(view.Settings))
	want := []v1alpha1.UnsignedAlgorithm{{Algorithm: "ES256", NextKey: string(spare.ID), NextAt: &at}}
	if diff := cmp.Diff(want, answer(operation.Outcome{Before: ring, View: view, Change: change}).Unsigned); diff != "" {
		t.Errorf("unsigned (-want +got):\n%s", diff)
	}
}
