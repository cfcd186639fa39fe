package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// A ring knows its own past through all that happens to it, and an older one does not.
func TestOlderRingsLackTheirPast(t *testing.T) {
	d := newDays(t)
	d.pass(48 * time.Hour)
	type step struct {
		name string
		do   func()
	}
	revoked := d.one(Active).ID
	for _, s := range []step{
		{"a rotation", func() {
			c := command()
			c.AcceptRefusals = true
			d.do(d.ring.RotateNow(d.view, c, d.keys.generate))
		}},
		{"a revocation", func() {
			c := command()
			c.Key, c.Reason, c.AcceptRefusals = revoked, "leaked", true
			d.do(d.ring.Revoke(d.view, c, d.keys.generate))
		}},
	} {
		before := d.ring
		s.do()
		if lacks := d.ring.Lacks(before.Past()); lacks != "" {
			t.Errorf("after %s the ring lacks its past: %s", s.name, lacks)
		}
		if before.Lacks(d.ring.Past()) == "" {
			t.Errorf("the ring from before %s does not lack what came after it", s.name)
		}
	}
	if lacks := d.ring.Lacks(Past{}); lacks != "" {
		t.Errorf("without a past: %s", lacks)
	}
}

// Revoked keys stay revoked when an older ring is resumed, and the successor knows the whole past.
func TestResume(t *testing.T) {
	d := newDays(t)
	d.pass(48 * time.Hour)
	old := d.ring
	stolen := d.one(Active)
	c := command()
	c.Key, c.Reason, c.AcceptRefusals = stolen.ID, "leaked", true
	d.do(d.ring.Revoke(d.view, c, d.keys.generate))
	newest := d.ring.Past()
	if lacks := old.Lacks(newest); !strings.Contains(lacks, string(stolen.ID)) {
		t.Errorf("the older ring lacks %q, want the revocation of %s", lacks, stolen.ID)
	}
	for name, past := range map[string]Past{
		"with all accounts": newest,
		"with kids alone":   {Published: newest.Published, Revoked: []Compromised{{ID: stolen.ID, Algorithm: stolen.Algorithm, RevokedAt: epoch}}},
	} {
		resumed, err := old.Resume(d.view, past, Cause{By: "jane", Reason: "a backup"}, d.keys.generate)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if lacks := resumed.Ring.Lacks(newest); lacks != "" || !resumed.Changed {
			t.Errorf("%s: the resumed ring lacks %q", name, lacks)
		}
		if slices.ContainsFunc(resumed.Ring.Keys, func(k Key) bool { return k.ID == stolen.ID }) {
			t.Errorf("%s: the revoked key is back", name)
		}
		if err := resumed.Ring.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// New keys where none are left: the ring is another one, and knows what was lost.
	fresh, err := Bootstrap(d.keys.generate, d.view.Now)
	testkit.Must(t, err)
	made, err := fresh.Resume(d.view, newest, Cause{By: "jane", Reason: "all is lost"}, d.keys.generate)
	if err != nil || made.Ring.Lacks(newest) != "" || len(made.Ring.Keys) != 4 {
		t.Errorf("a new ring: %v, lacks %q", err, made.Ring.Lacks(newest))
	}
	if again, err := made.Ring.Resume(d.view, newest, Cause{By: "jane"}, d.keys.generate); err != nil || again.Changed {
		t.Errorf("resumed twice: changed %v, %v", again.Changed, err)
	}
}

// A spare of an older ring may have signed in the one that is lost: its revocation records until when tokens of it may be valid.
func TestSparesOfAResumedRingMayHaveSigned(t *testing.T) {
	d := newDays(t)
	d.pass(48 * time.Hour)
	old := d.ring
	c := command()
	c.AcceptRefusals = true
	d.do(d.ring.RotateNow(d.view, c, d.keys.generate))
	signed := d.one(Active)
	newest := d.ring.Past()
	d.ring = old
	d.pass(time.Hour)
	d.do(d.ring.Resume(d.view, newest, Cause{By: "jane", Reason: "a backup"}, d.keys.generate))
	bound := d.view.Now.Add(d.view.Settings.MaxLifetime)
	if spare := d.one(Spare); !spare.RemovableAt(d.view.Settings).IsZero() {
		t.Errorf("%s is removable", spare)
	}

	c = command()
	c.Key, c.Reason = signed.ID, "leaked"
	revoked := testkit.Need(d.ring.Revoke(d.view, c, d.keys.generate))(t)
	if gone := revoked.Ring.Compromised[0]; gone.ID != signed.ID || gone.LastExpiry.Before(bound) {
		t.Errorf("revoked %+v, want a last expiry from %s", gone, bound)
	}
	testkit.Expect(t, revoked.Ring.Validate())
	for _, key := range revoked.Ring.Keys {
		if made := old.index(key.ID) < 0; key.State == Spare && key.LastExpiry.IsZero() != made {
			t.Errorf("%s: last expiry %s, made after the loss: %t", key, key.LastExpiry, made)
		}
	}
	// It signs as any other, and what it signs then counts.
	c = command()
	c.AcceptRefusals = true
	d.do(d.ring.RotateNow(d.view, c, d.keys.generate))
	active := d.one(Active)
	if later := d.view.Now.Add(48 * time.Hour); active.ID != signed.ID || active.ExpiryBound(d.view.Settings, later).Before(later) {
		t.Errorf("%s has the bound %s at %s", active, active.ExpiryBound(d.view.Settings, later), later)
	}
}

// A resume changes neither when a key was revoked, nor until when its tokens may be valid.
func TestResumeKeepsTheTimeOfARevocation(t *testing.T) {
	for _, state := range []State{Active, Spare} {
		d := newDays(t)
		d.pass(48 * time.Hour)
		old := d.ring
		stolen := d.one(state)
		revokedAt := d.view.Now
		d.do(d.ring.Revoke(d.view, revoke(stolen), d.keys.generate))
		full := d.ring.Past()
		bare := Past{Published: full.Published, Revoked: []Compromised{{ID: stolen.ID, Algorithm: stolen.Algorithm, RevokedAt: revokedAt}}}
		d.pass(240 * time.Hour)
		for name, past := range map[string]Past{"with all accounts": full, "with kids alone": bare} {
			resumed := testkit.Need(old.Resume(d.view, past, Cause{By: "jane", Reason: "a backup"}, d.keys.generate))(t)
			gone := resumed.Ring.Compromised[0]
			if gone.ID != stolen.ID || !gone.RevokedAt.Equal(revokedAt) {
				t.Errorf("%s, %s: revoked %+v, want at %s", state, name, gone, revokedAt)
			}
			if want := revokedAt.Add(d.view.Settings.expiryBound(d.view.Settings.terms())); !gone.LastExpiry.Equal(want) {
				t.Errorf("%s, %s: last expiry %s, want %s", state, name, gone.LastExpiry, want)
			}
			if err := resumed.Ring.Validate(); err != nil {
				t.Errorf("%s, %s: %v", state, name, err)
			}
		}
	}
}

// The record with a reason wins, from either side.
func TestPastsJoin(t *testing.T) {
	const id = identity.KeyID("a")
	bare := Past{Revoked: []Compromised{{ID: id}}}
	full := Past{Revoked: []Compromised{{ID: id, Cause: Cause{By: "jane", Reason: "leaked"}}}, Published: map[identity.KeyID]identity.Algorithm{"b": identity.ES256}}
	for _, joined := range []Past{bare.Join(full), full.Join(bare)} {
		if len(joined.Revoked) != 1 || joined.Revoked[0].By != "jane" || joined.Published["b"] != identity.ES256 {
			t.Errorf("joined %+v", joined)
		}
	}
	if !(Past{}).Join(Past{}).Empty() || full.Empty() {
		t.Error("an empty past is not known")
	}
}

// A thousand revocations are remembered. The next one is carried out, and forgets the oldest: other parts of Credence that still know
// that one find the ring no older than it is.
func TestOldestRevocationsAreForgotten(t *testing.T) {
	d := newDays(t)
	d.pass(48 * time.Hour)
	stolen := d.one(Active)
	revoke := func(key identity.KeyID) {
		t.Helper()
		c := command()
		c.Key, c.Reason, c.AcceptRefusals = key, "leaked", true
		d.do(d.ring.Revoke(d.view, c, d.keys.generate))
	}
	before := d.ring
	revoke(stolen.ID)
	d.pass(time.Hour)
	for i := len(d.ring.Compromised); i < maxCompromised; i++ {
		sum := sha256.Sum256([]byte{byte(i >> 8), byte(i)})
		id := identity.KeyID(base64.RawURLEncoding.EncodeToString(sum[:]))
		d.ring.Compromised = append(d.ring.Compromised, Compromised{ID: id, Algorithm: stolen.Algorithm, RevokedAt: d.ring.clock(d.view), Cause: Cause{By: "jane", Reason: "leaked"}})
	}
	full := d.ring
	testkit.Must(t, full.Validate())

	d.pass(time.Hour)
	next := d.one(Active)
	revoke(next.ID)
	past := full.Past().Join(d.ring.Past())
	switch {
	case len(d.ring.Compromised) != maxCompromised:
		t.Errorf("%d revocations are remembered, want %d", len(d.ring.Compromised), maxCompromised)
	case slices.ContainsFunc(d.ring.Compromised, func(c Compromised) bool { return c.ID == stolen.ID }):
		t.Error("the oldest revocation is remembered")
	case !slices.ContainsFunc(d.ring.Compromised, func(c Compromised) bool { return c.ID == next.ID }):
		t.Error("the newest revocation is forgotten")
	}
	testkit.Expect(t, d.ring.Validate())
	if lacks := d.ring.Lacks(past); lacks != "" {
		t.Errorf("the ring lacks its past: %s", lacks)
	}
	if again, err := d.ring.Resume(d.view, past, Cause{By: "jane", Reason: "a backup"}, d.keys.generate); err != nil || again.Changed {
		t.Errorf("resumed without a need: changed %t, %v", again.Changed, err)
	}
	// Older rings are known as such, whether or not they are full.
	for name, old := range map[string]Ring{"before all": before, "before the last": full} {
		if old.Lacks(past) == "" {
			t.Errorf("the ring from %s revocations lacks nothing", name)
		}
	}
	// A key that is forgotten and in the ring is revoked when that is resumed.
	resumed, err := before.Resume(d.view, past, Cause{By: "jane", Reason: "a backup"}, d.keys.generate)
	if err != nil || resumed.Ring.index(stolen.ID) >= 0 || resumed.Ring.Lacks(past) != "" {
		t.Errorf("resumed: %v; lacks %q", err, resumed.Ring.Lacks(past))
	}
}

// A consent in a ring counts for a day: a backup keeps it.
func TestConsentGrowsOld(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if (*Resuming)(nil).Counts(at) {
		t.Error("a ring without a consent has one")
	}
	given := &Resuming{At: at, Cause: Cause{By: "jane", Reason: "a backup"}}
	for age, want := range map[time.Duration]bool{
		0: true, time.Hour: true, 24*time.Hour - time.Second: true, 24 * time.Hour: false, 365 * 24 * time.Hour: false,
		-time.Hour: true, -24 * time.Hour: false, // clocks differ
	} {
		if got := given.Counts(at.Add(age)); got != want {
			t.Errorf("a consent of %s ago counts: %t, want %t", age, got, want)
		}
	}
}
