package keys

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
)

func TestRotateWaitsForTheSpare(t *testing.T) {
	d := newDays(t)
	before := d.ring
	d.do(d.ring.Rotate(d.view, command()))
	if _, changed := before.request(identity.ES256); changed {
		t.Error("the ring that was given has changed")
	}
	again, err := d.ring.Rotate(d.view, command())
	if err != nil || again.Changed {
		t.Errorf("requested twice: changed %v, %v", again.Changed, err)
	}
	plan := d.ring.Plan(d.view)
	if ready := epoch.Add(28*time.Hour + time.Minute); !plan.NextChange.Equal(ready) || !plan.Due(ready) || plan.Due(ready.Add(-1)) {
		t.Errorf("plan %+v, want a rotation at %s", plan, ready)
	}
	if got := d.pass(28 * time.Hour); got != nil {
		t.Errorf("early: %v", kinds(got))
	}
	if got := d.pass(time.Minute); len(got) != 3 {
		t.Errorf("events %v, want a rotation", kinds(got))
	}
	if len(d.ring.Requests) != 0 || d.ring.Plan(d.view).Due(d.view.Now) {
		t.Errorf("requests %v after the rotation", d.ring.Requests)
	}
}

func TestTwoRotationsAtOnceAreOne(t *testing.T) {
	d := newDays(t)
	d.pass(48 * time.Hour)
	c := command()
	c.Key = d.one(Active).ID
	c.AcceptRefusals = true
	d.do(d.ring.RotateNow(d.view, c, d.keys.generate))
	_, err := d.ring.RotateNow(d.view, c, d.keys.generate)
	d.refused(AlreadyDone, err)
	_, err = d.ring.Rotate(d.view, c)
	d.refused(AlreadyDone, err)
}

func TestRotateNow(t *testing.T) {
	d := newDays(t)
	_, err := d.ring.RotateNow(d.view, command(), d.keys.generate)
	if refused := d.refused(TooYoung, err); !refused.ReadyAt.Equal(epoch.Add(28*time.Hour + time.Minute)) {
		t.Errorf("ready at %s", refused.ReadyAt)
	}
	accepted := command()
	accepted.AcceptRefusals = true
	if events := d.do(d.ring.RotateNow(d.view, accepted, d.keys.generate)); !events[1].AcceptRefusals {
		t.Errorf("event %+v lacks the accepted refusals", events[1])
	}
	d.pass(0)
	d.pass(28*time.Hour + time.Minute)
	if events := d.do(d.ring.RotateNow(d.view, accepted, d.keys.generate)); events[1].AcceptRefusals {
		t.Errorf("event %+v, but the spare was old enough", events[1])
	}
}

func TestRevokeTheActiveKey(t *testing.T) {
	t.Run("with an old spare", func(t *testing.T) {
		d := newDays(t)
		d.pass(48 * time.Hour)
		active, spare := d.one(Active), d.one(Spare)
		events := d.do(d.ring.Revoke(d.view, revoke(active), d.keys.generate))
		if diff := cmp.Diff([]string{"ES256 revoked", "ES256 activated", "ES256 published"}, kinds(events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if now := d.one(Active); now.ID != spare.ID || len(d.es256(Spare)) != 1 {
			t.Errorf("%v signs, want the spare and a new one", now)
		}
		gone := d.ring.Compromised[0]
		want := Compromised{
			ID: active.ID, Algorithm: identity.ES256, RevokedAt: d.view.Now, ActivatedAt: epoch,
			LastExpiry: d.view.Now.Add(52*time.Hour + time.Minute), Cause: Cause{"operator", "leaked"},
		}
		if diff := cmp.Diff(want, gone); diff != "" {
			t.Errorf("compromised (-want +got):\n%s", diff)
		}
		if slices.ContainsFunc(d.ring.Published(), func(p identity.PublicKey) bool { return p.ID == active.ID }) {
			t.Error("the revoked key is published")
		}
		_, err := d.ring.Revoke(d.view, revoke(active), d.keys.generate)
		d.refused(AlreadyDone, err)
		broken := d.ring
		broken.Keys = append(slices.Clone(broken.Keys), active)
		broken.Keys[len(broken.Keys)-1].State = Spare
		broken.Keys[len(broken.Keys)-1].ActivatedAt, broken.Keys[len(broken.Keys)-1].Terms = time.Time{}, Terms{}
		if err := broken.Validate(); err == nil || !strings.Contains(err.Error(), "never used again") {
			t.Errorf("a revoked key came back: %v", err)
		}
	})
	t.Run("with a young spare", func(t *testing.T) {
		d := newDays(t)
		spare := d.one(Spare)
		d.do(d.ring.Revoke(d.view, revoke(d.one(Active)), d.keys.generate))
		if _, signs := d.ring.Signer(identity.ES256); signs || len(d.es256(Spare)) != 2 {
			t.Errorf("ring %v, want no active key and two spares", d.ring.Keys)
		}
		if diff := cmp.Diff([]ConditionType{NoSigningKey}, d.conditions()); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		_, err := d.ring.Rotate(d.view, command())
		d.refused(AlreadyDone, err)
		if got := d.pass(28 * time.Hour); got != nil {
			t.Errorf("early: %v", kinds(got))
		}
		if diff := cmp.Diff([]string{"ES256 activated"}, kinds(d.pass(time.Minute))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if active := d.one(Active); active.ID != spare.ID || len(d.es256(Spare)) != 1 || d.conditions() != nil {
			t.Errorf("%v signs, want %v, and one spare", active, spare)
		}
	})
	t.Run("with a young spare that is let sign", func(t *testing.T) {
		d := newDays(t)
		spare := d.one(Spare)
		c := revoke(d.one(Active))
		c.AcceptRefusals = true
		if events := d.do(d.ring.Revoke(d.view, c, d.keys.generate)); !events[1].AcceptRefusals || d.one(Active).ID != spare.ID {
			t.Errorf("events %+v, want the spare active with refusals accepted", events)
		}
	})
}

func TestRevokeOtherKeys(t *testing.T) {
	d := newDays(t)
	d.pass(d.view.Settings.RotationPeriod)
	active, spare, retiring := d.one(Active), d.one(Spare), d.one(Retiring)
	d.do(d.ring.Revoke(d.view, revoke(spare), d.keys.generate))
	if fresh := d.one(Spare); fresh.ID == spare.ID || !d.ring.Compromised[0].LastExpiry.IsZero() {
		t.Errorf("%v took the place of %v", fresh, spare)
	}
	d.do(d.ring.Revoke(d.view, revoke(retiring), d.keys.generate))
	if len(d.es256(Retiring)) != 0 || d.one(Active).ID != active.ID || d.one(Spare).ID == "" {
		t.Errorf("ring %v, want the same active key, a spare and no retiring one", d.ring.Keys)
	}
}

func TestBadCommands(t *testing.T) {
	d := newDays(t)
	unknown := Key{ID: identity.KeyID(strings.Repeat("A", 43))}
	cases := map[string]struct {
		change func(c *Command)
		want   RefusalReason
	}{
		"no user":             {func(c *Command) { c.By = "" }, BadCommand},
		"no reason":           {func(c *Command) { c.Reason = "" }, BadCommand},
		"reason on two lines": {func(c *Command) { c.Reason = "a\nb" }, BadCommand},
		"long reason":         {func(c *Command) { c.Reason = strings.Repeat("a", 257) }, BadCommand},
		"unknown key":         {func(c *Command) { c.Key = unknown.ID }, NoSuchKey},
		"no key":              {func(c *Command) { c.Key = "" }, NoSuchKey},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			command := revoke(d.one(Active))
			c.change(&command)
			_, err := d.ring.Revoke(d.view, command, d.keys.generate)
			d.refused(c.want, err)
		})
	}
	other := command()
	other.Algorithm = "EdDSA"
	_, err := d.ring.Rotate(d.view, other)
	d.refused(BadCommand, err)
	_, err = d.ring.RotateNow(d.view, other, d.keys.generate)
	d.refused(BadCommand, err)
}

func TestHistoryIsBoundedAndCompromisedKeysAreNot(t *testing.T) {
	d := newDays(t)
	for range 100 {
		d.do(d.ring.Revoke(d.view, revoke(d.es256(Spare)[0]), d.keys.generate))
	}
	if len(d.ring.History) != MaxHistory || len(d.ring.Compromised) != 100 {
		t.Errorf("%d events and %d compromised keys, want %d and 100", len(d.ring.History), len(d.ring.Compromised), MaxHistory)
	}
	last := d.ring.History[MaxHistory-1]
	if last.Kind != Published || last.Key != d.one(Spare).ID {
		t.Errorf("the last event is %+v, want the publication of the spare", last)
	}
}

// A key that is due to leave makes space for a rotation, also while no controller runs.
func TestRotateNowMakesRoom(t *testing.T) {
	d := newDays(t)
	d.view.Settings.RotationPeriod = 90 * 24 * time.Hour // nothing is due by itself
	urgent := command()
	urgent.AcceptRefusals = true
	for range 2 {
		d.pass(time.Hour)
		d.do(d.ring.RotateNow(d.view, urgent, d.keys.generate))
	}
	d.pass(0)
	if n := d.ring.count(identity.ES256); n != MaxPerAlgorithm {
		t.Fatalf("%d keys, want a full ring", n)
	}
	_, err := d.ring.RotateNow(d.view, urgent, d.keys.generate)
	full := d.refused(TooManyKeys, err)

	// Nothing has been removed since.
	d.view.Now = full.ReadyAt.Add(-time.Second)
	_, err = d.ring.RotateNow(d.view, urgent, d.keys.generate)
	d.refused(TooManyKeys, err)
	d.view.Now = full.ReadyAt
	events := d.do(d.ring.RotateNow(d.view, urgent, d.keys.generate))
	got := kinds(events)
	if n := len(got); n < 4 || got[0] != "ES256 removed" || !slices.Equal(got[n-3:], []string{"ES256 retired", "ES256 activated", "ES256 published"}) {
		t.Errorf("events %v, want what is due to leave, and a rotation", got)
	}
}
