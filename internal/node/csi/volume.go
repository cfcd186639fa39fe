package csi

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
)

// request is a volume as a pod has it.
type request struct {
	path          string
	identity, pod types.NamespacedName
	uid           types.UID // of the pod
	mountPath     string    // where containers have the volume
	group         *int64    // whose members read the files; nil: all users do
	registries    string    // whose passwords the volume has, by a list; empty: none

	podToken       identity.Token
	podTokenExpiry time.Time
}

// volume is what is known of one.
type volume struct {
	mu    sync.Mutex
	gone  bool      // this is not the volume of its path any more
	owner types.UID // the pod; guarded by the driver's mu

	request
	mounted bool
	token   *renewal.Token // that it holds; nil: none that can be read
	renewAt time.Time
	expires atomic.Pointer[time.Time] // of the token, for metrics, which wait for no request

	failures int
	failure  error
	retryAt  time.Time
}

// held is a token that a volume holds, with a digest of its text.
type held struct {
	renewal.Token
	id   string
	seed uint32
	// ends is when the first of what the volume holds expires: the token, or a password that was made of it.
	ends time.Time
}

// inspect reads a token.
func inspect(text []byte) (held, error) {
	inspection, err := relyingparty.Inspect(string(text))
	if err != nil {
		return held{}, err
	}
	if inspection.IssuedAt.IsZero() || inspection.Expiry.Sub(inspection.IssuedAt) < time.Second {
		return held{}, fmt.Errorf("it is valid from %s to %s", inspection.IssuedAt, inspection.Expiry)
	}
	sum := sha256.Sum256(text)
	token := renewal.Token{KeyID: inspection.KeyID, Subject: inspection.Subject, Audiences: inspection.Audience, IssuedAt: inspection.IssuedAt, Expiry: inspection.Expiry}
	return held{token, inspection.ID, binary.BigEndian.Uint32(sum[:]), token.Expiry}, nil
}

// hold notes the token that a volume holds now. When it is renewed is drawn by its own text, so that it is the same after a restart.
func (v *volume) hold(token held, window renewal.Window) {
	v.token, v.renewAt = &token.Token, window.Draw(token.IssuedAt, token.ends, func() float64 { return float64(token.seed) / (math.MaxUint32 + 1) })
	v.failures, v.failure = 0, nil
	v.expires.Store(&v.token.Expiry)
}

// due reports whether the token is to be renewed now. Changes of the identity are seen when it is.
func (v *volume) due(now time.Time) bool {
	state := renewal.State{Token: v.token, RenewAt: v.renewAt.Format(time.RFC3339)}
	var want renewal.Want
	if v.token != nil {
		want = renewal.Want{Subject: v.token.Subject, Audiences: v.token.Audiences}
	}
	return renewal.Decide(state, want, now).Renew()
}
