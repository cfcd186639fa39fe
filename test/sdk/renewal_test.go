package sdk

import (
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// A program that runs for long keeps its credentials: across a renewal of the token, across the rotation of the key, and
// when it starts anew with what is there by then.
func TestRenewalAndRotation(t *testing.T) {
	for _, c := range clouds() {
		t.Run(c.String(), func(t *testing.T) {
			w := newWorld(t)
			first := w.issue(t, request(c))
			pod := newPod(t, c, w.authority)
			pod.deliver(t, first.Token)
			pod.start(t)
			w.granted(t, c, pod.ask(t), first)

			renewed := w.issue(t, request(c))
			pod.deliver(t, renewed.Token)
			read := renewed
			if c.cachesToken {
				read = first
			}
			w.granted(t, c, pod.ask(t), read)

			for _, algorithm := range []identity.Algorithm{identity.RS256, identity.ES256} {
				testkit.Must(t, w.plane.Rotate(algorithm))
			}
			// The pod still has the token of the key that signs no more.
			w.granted(t, c, pod.ask(t), read)

			rotated := w.issue(t, request(c))
			if rotated.KeyID == first.KeyID {
				t.Fatalf("key %s still signs", first.KeyID)
			}
			pod.deliver(t, rotated.Token)
			if c.cachesToken {
				w.granted(t, c, pod.ask(t), first)
			} else {
				w.granted(t, c, pod.ask(t), rotated)
			}
			pod.start(t)
			w.granted(t, c, pod.ask(t), rotated)
		})
	}
}
