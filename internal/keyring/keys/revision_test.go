package keys

import (
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// The revision grows with each change, and also where a ring is made anew beside a past.
func TestRevisionGrows(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ring, err := Bootstrap(NewPrivate, now)
	if err != nil || ring.Revision != 1 {
		t.Fatalf("revision %d, %v", ring.Revision, err)
	}
	view := View{Now: now}
	if same, err := ring.Step(view, NewPrivate); err != nil || same.Changed || same.Ring.Revision != ring.Revision {
		t.Errorf("nothing was due: revision %d, %v", same.Ring.Revision, err)
	}
	active, _ := ring.Signer(identity.ES256)
	cause := Cause{By: "jane", Reason: "leaked"}
	revoked, err := ring.Revoke(view, Command{Key: active.ID, Cause: cause}, NewPrivate)
	if err != nil || revoked.Ring.Revision <= ring.Revision {
		t.Errorf("after a revocation: %d, %v", revoked.Ring.Revision, err)
	}
	past := revoked.Ring.Past()
	past.Revision = 41
	anew, err := Bootstrap(NewPrivate, now)
	testkit.Must(t, err)
	resumed, err := anew.Resume(view, past, cause, NewPrivate)
	if err != nil || resumed.Ring.Revision != 42 {
		t.Errorf("a ring that was made anew: revision %d, %v", resumed.Ring.Revision, err)
	}
	encoded, err := resumed.Ring.Encode()
	testkit.Must(t, err)
	read, err := Decode(encoded.Document, func(id identity.KeyID) ([]byte, error) { return encoded.Private[id], nil })
	if err != nil || read.Revision != 42 {
		t.Errorf("read: revision %d, %v", read.Revision, err)
	}
}
