package keys

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// days is a ring of stubs and its clock, which only a test moves.
type days struct {
	t    *testing.T
	ring Ring
	view View
	keys world
}

func newDays(t *testing.T) *days {
	d := &days{t: t, view: View{Settings: Settings{}.withDefaults(), Now: epoch}}
	ring := testkit.Need(Bootstrap(d.keys.generate, epoch))(t)
	d.ring = ring
	return d
}

// pass lets time go by and takes every step that is due, as a controller does.
func (d *days) pass(by time.Duration) []Event {
	d.t.Helper()
	d.view.Now = d.view.Now.Add(by)
	var events []Event
	for range 10 {
		change, err := d.ring.Step(d.view, d.keys.generate)
		if err != nil {
			d.t.Fatal(err)
		}
		if change.Changed != d.ring.Plan(d.view).Due(d.view.Now) {
			d.t.Fatalf("changed: %v, but the plan is %+v", change.Changed, d.ring.Plan(d.view))
		}
		if !change.Changed {
			return events
		}
		events = append(events, change.Events...)
		d.store(change)
	}
	d.t.Fatal("the ring changes for ever")
	return nil
}

func (d *days) store(change Change) {
	d.t.Helper()
	if err := change.Ring.Validate(); err != nil {
		d.t.Fatal(err)
	}
	d.ring = change.Ring
}

// do applies a user's change, with its results.
func (d *days) do(change Change, err error) []Event {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	d.store(change)
	return change.Events
}

func (d *days) refused(want RefusalReason, err error) *Refused {
	d.t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || refused.Reason != want || refused.Message == "" {
		d.t.Fatalf("error %v, want a refusal for %s", err, want)
	}
	return refused
}

// es256 are the keys of one algorithm, by state.
func (d *days) es256(state State) []Key {
	var found []Key
	for _, key := range d.ring.Keys {
		if key.Algorithm == identity.ES256 && key.State == state {
			found = append(found, key)
		}
	}
	return found
}

func (d *days) one(state State) Key {
	d.t.Helper()
	found := d.es256(state)
	if len(found) != 1 {
		d.t.Fatalf("%d ES256 keys are %s, want one: %v", len(found), state, d.ring.Keys)
	}
	return found[0]
}

func (d *days) conditions() []ConditionType {
	var types []ConditionType
	for _, condition := range d.ring.Plan(d.view).Conditions {
		types = append(types, condition.Type)
	}
	return types
}

func command() Command {
	return Command{Algorithm: identity.ES256, Cause: Cause{By: "operator", Reason: "test"}}
}

func revoke(key Key) Command {
	return Command{Key: key.ID, Cause: Cause{By: "operator", Reason: "leaked"}}
}

func kinds(events []Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%s %s", e.Algorithm, e.Kind))
	}
	return all
}

func TestLifeOfAKey(t *testing.T) {
	d := newDays(t)
	first, second := d.one(Active), d.one(Spare)
	period := d.view.Settings.RotationPeriod
	if got := d.pass(period - time.Second); got != nil {
		t.Fatalf("before the period is over: %v", kinds(got))
	}
	want := []string{
		"RS256 retired", "RS256 activated", "RS256 published",
		"ES256 retired", "ES256 activated", "ES256 published",
	}
	if diff := cmp.Diff(want, kinds(d.pass(time.Second))); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	now := d.view.Now
	retired := d.one(Retiring)
	if active := d.one(Active); active.ID != second.ID || !active.ActivatedAt.Equal(now) {
		t.Errorf("%v signs since %s, want %v since now", active, active.ActivatedAt, second)
	}
	if spare := d.one(Spare); !spare.PublishedAt.Equal(now) {
		t.Errorf("the new spare is published since %s, want now", spare.PublishedAt)
	}
	// 48h of the token, a minute of the snapshot, and two hours each for the clocks of controller and replica.
	if want := now.Add(52*time.Hour + time.Minute); retired.ID != first.ID || !retired.RetiredAt.Equal(now) || !retired.LastExpiry.Equal(want) {
		t.Errorf("%v retired at %s with last expiry %s, want %v now and %s", retired, retired.RetiredAt, retired.LastExpiry, first, want)
	}
	if got := d.pass(54*time.Hour + 4*time.Minute + 29*time.Second); got != nil {
		t.Errorf("before the retention is over: %v", kinds(got))
	}
	if diff := cmp.Diff([]string{"RS256 removed", "ES256 removed"}, kinds(d.pass(time.Second))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(d.ring.Keys) != 4 || !d.ring.remembers(first.ID) {
		t.Errorf("ring %v, want four keys and the first remembered", d.ring.Keys)
	}
}

// The decision of a step counts only when it is found in the store, however long that took.
func TestTimesCountFromWhenTheyAreStored(t *testing.T) {
	d := newDays(t)
	d.view.Now = d.view.Now.Add(d.view.Settings.RotationPeriod)
	change := testkit.Need(d.ring.Step(d.view, d.keys.generate))(t)
	d.store(change)
	if spare, retiring := d.one(Spare), d.one(Retiring); !spare.PublishedAt.IsZero() || !retiring.LastExpiry.IsZero() {
		t.Fatalf("times are known before the ring was stored: %s, %s", spare.PublishedAt, retiring.LastExpiry)
	}
	if _, err := d.ring.RotateNow(d.view, command(), d.keys.generate); err == nil {
		t.Error("a spare signs that was not found published")
	}
	if events := d.pass(5 * time.Hour); events != nil {
		t.Errorf("events %v", kinds(events))
	}
	if spare := d.one(Spare); !spare.PublishedAt.Equal(d.view.Now) {
		t.Errorf("published since %s, want %s", spare.PublishedAt, d.view.Now)
	}
	if retiring := d.one(Retiring); !retiring.LastExpiry.Equal(d.view.Now.Add(52*time.Hour + time.Minute)) {
		t.Errorf("last expiry %s, 5h after %s", retiring.LastExpiry, retiring.RetiredAt)
	}
}

func TestAlgorithmsRotateByThemselves(t *testing.T) {
	d := newDays(t)
	rsa, _ := d.ring.Signer(identity.RS256)
	d.pass(48 * time.Hour)
	d.do(d.ring.Rotate(d.view, command()))
	events := d.pass(0)
	if diff := cmp.Diff([]string{"ES256 retired", "ES256 activated", "ES256 published"}, kinds(events)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	for _, e := range events[:2] {
		if e.By != "operator" || e.Reason != "test" {
			t.Errorf("%s by %s: %s, want the user who requested it", e.Kind, e.By, e.Reason)
		}
	}
	if active, _ := d.ring.Signer(identity.RS256); active.ID != rsa.ID {
		t.Errorf("RS256 has rotated too: %v", active)
	}
	// Each becomes due when its own key is old enough.
	got := d.pass(d.view.Settings.RotationPeriod - 48*time.Hour)
	if diff := cmp.Diff([]string{"RS256 retired", "RS256 activated", "RS256 published"}, kinds(got[len(got)-3:])); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCapStopsRotation(t *testing.T) {
	d := newDays(t)
	accepted := command()
	accepted.AcceptRefusals = true
	for range 2 {
		d.do(d.ring.RotateNow(d.view, accepted, d.keys.generate))
		d.pass(time.Minute)
		if got := d.conditions(); got != nil {
			t.Errorf("conditions %v, but no rotation is due", got)
		}
	}
	if n := d.ring.count(identity.ES256); n != 4 {
		t.Fatalf("%d ES256 keys, want 4", n)
	}
	free := epoch.Add(54*time.Hour + 5*time.Minute + 30*time.Second)
	_, err := d.ring.RotateNow(d.view, accepted, d.keys.generate)
	if refused := d.refused(TooManyKeys, err); !refused.ReadyAt.Equal(free) {
		t.Errorf("ready at %s, want %s", refused.ReadyAt, free)
	}
	d.do(d.ring.Rotate(d.view, command()))
	if got := d.pass(free.Sub(d.view.Now) - time.Second); got != nil {
		t.Errorf("at the cap: %v", kinds(got))
	}
	if diff := cmp.Diff([]ConditionType{CapReached}, d.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	// Another algorithm is not concerned.
	other := accepted
	other.Algorithm = identity.RS256
	d.do(d.ring.RotateNow(d.view, other, d.keys.generate))
	got := d.pass(time.Second)
	if diff := cmp.Diff([]string{"ES256 removed", "ES256 retired", "ES256 activated", "ES256 published"}, kinds(got)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// A revocation is never stopped.
	d.do(d.ring.Revoke(d.view, revoke(d.one(Active)), d.keys.generate))
	if n := d.ring.count(identity.ES256); n != 4 {
		t.Errorf("%d ES256 keys after a revocation, want 4", n)
	}
}

func TestGatesHoldBackActivation(t *testing.T) {
	d := newDays(t)
	d.view.Gates = []Gate{{Name: "public URL", Knows: []identity.KeyID{d.one(Spare).ID}}, {Name: "bank"}}
	d.pass(48 * time.Hour)
	d.do(d.ring.Rotate(d.view, command()))
	if got := d.pass(0); got != nil {
		t.Fatalf("through a closed gate: %v", kinds(got))
	}
	plan := d.ring.Plan(d.view)
	if len(plan.Conditions) != 1 || plan.Conditions[0].Type != AwaitingGates || !strings.HasSuffix(plan.Conditions[0].Message, "not known to: bank") {
		t.Errorf("conditions %+v, want one that names the bank", plan.Conditions)
	}
	if plan.Due(d.view.Now) || plan.Due(d.view.Now.Add(90*24*time.Hour)) {
		t.Errorf("plan %+v, want nothing before the gate opens", plan)
	}
	if plan.NextChange.After(d.view.Now) || plan.MaxAge != d.view.Settings.Staleness {
		t.Errorf("next change %s, max-age %s, want documents that are kept shortly, since the gate may open at any moment", plan.NextChange, plan.MaxAge)
	}
	_, err := d.ring.RotateNow(d.view, command(), d.keys.generate)
	d.refused(UnknownToGates, err)
	d.view.Gates[1].Knows = d.view.Gates[0].Knows
	if got := d.pass(0); len(got) != 3 {
		t.Errorf("events %v, want a rotation", kinds(got))
	}
}

// A key that is only in the ring is unknown to all relying parties: its time begins with the documents.
func TestPublicationCountsFromTheDocuments(t *testing.T) {
	d := newDays(t)
	known := []identity.KeyID{d.one(Spare).ID}
	d.view.Documents = &Gate{Name: "ConfigMap credence-discovery", Knows: known}
	d.pass(d.view.Settings.RotationPeriod)
	spare := d.one(Spare)
	if !spare.PublishedAt.IsZero() {
		t.Fatalf("a spare that the documents do not show is published since %s", spare.PublishedAt)
	}
	if got := d.conditions(); slices.Contains(got, DocumentsBehind) {
		t.Errorf("conditions %v before the documents had time to follow", got)
	}
	d.pass(d.view.Settings.Staleness + time.Second)
	if got := d.conditions(); !slices.Contains(got, DocumentsBehind) {
		t.Errorf("conditions %v, want that the documents are behind", got)
	}
	_, err := d.ring.RotateNow(d.view, command(), d.keys.generate)
	d.refused(TooYoung, err)

	d.view.Documents.Knows = append(known, spare.ID)
	d.pass(time.Hour)
	shown := d.view.Now
	if got := d.one(Spare).PublishedAt; got != shown {
		t.Fatalf("published since %s, want %s, when the documents showed it", got, shown)
	}
	// Once shown and then gone: it does not sign before it is back.
	d.do(d.ring.Rotate(d.view, command()))
	d.view.Documents.Knows = nil
	if got := d.pass(d.view.Settings.Wait()); got != nil {
		t.Fatalf("though the documents do not show the spare: %v", kinds(got))
	}
	d.view.Documents.Knows = []identity.KeyID{spare.ID}
	d.pass(0)
	if got := d.one(Active).ID; got != spare.ID {
		t.Errorf("%s is active, want the spare %s", got, spare.ID)
	}
}

func TestTermsAreRaisedAtOnceAndLoweredWithTheNextKey(t *testing.T) {
	d := newDays(t)
	d.view.Settings.MaxLifetime = 72 * time.Hour
	d.pass(0)
	if got := d.one(Active).Terms; got != (Terms{72 * time.Hour, time.Minute}) {
		t.Errorf("terms %v, want 72h", got)
	}
	d.view.Settings.MaxLifetime = time.Hour
	d.pass(d.view.Settings.RotationPeriod)
	if got := d.one(Active).Terms; got != (Terms{time.Hour, time.Minute}) {
		t.Errorf("terms of the next key %v, want 1h", got)
	}
	if want := d.view.Now.Add(76*time.Hour + time.Minute); !d.one(Retiring).LastExpiry.Equal(want) {
		t.Errorf("last expiry %s, want %s", d.one(Retiring).LastExpiry, want)
	}
}

// No reading of a clock within its bounds makes a key look older, or gone for longer, than by the latest time in the ring.
func TestClockThatIsSetBack(t *testing.T) {
	d := newDays(t)
	d.pass(d.view.Settings.RotationPeriod)
	last := d.view.Now
	for _, back := range []time.Duration{time.Second, 2 * time.Hour, 4 * time.Hour} {
		d.view.Now = last.Add(-back)
		if got := d.pass(0); got != nil {
			t.Errorf("%s back: %v", back, kinds(got))
		}
		accepted := command()
		accepted.AcceptRefusals = true
		change := testkit.Need(d.ring.RotateNow(d.view, accepted, d.keys.generate))(t)
		change = testkit.Need(change.Ring.Step(d.view, d.keys.generate))(t)
		for _, key := range change.Ring.Keys {
			if key.Algorithm == identity.ES256 && key.State == Spare && key.PublishedAt.Before(last) {
				t.Errorf("%s back: a new spare is published since %s, before the last change of the ring %s", back, key.PublishedAt, last)
			}
			if key.State == Retiring && key.LastExpiry.Before(last.Add(52*time.Hour)) {
				t.Errorf("%s back: %v is kept until %s only", back, key, key.LastExpiry)
			}
		}
	}
}

// Where the clock is, or was, more wrong than it may be nothing is done by itself, whatever is due.
func TestClockThatIsSetBackTooFar(t *testing.T) {
	d := newDays(t)
	d.pass(d.view.Settings.RotationPeriod)
	removable := d.one(Retiring).RemovableAt(d.view.Settings)
	d.view.Now = removable.Add(4*time.Hour + time.Second)
	other := command()
	other.Algorithm, other.AcceptRefusals = identity.RS256, true
	d.do(d.ring.RotateNow(d.view, other, d.keys.generate))
	d.view.Now = removable
	if diff := cmp.Diff([]ConditionType{ClockBehind}, d.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got := d.pass(0); got != nil {
		t.Errorf("events %v", kinds(got))
	}
	if got := d.pass(time.Second); len(got) == 0 || d.conditions() != nil {
		t.Errorf("events %v, want the removals that were due", kinds(got))
	}
}

// A ring that was changed by a clock far in the future can be mended by revoking what it changed.
func TestRingOfTheFutureCanBeMended(t *testing.T) {
	d := newDays(t)
	d.pass(100 * 365 * 24 * time.Hour)
	d.view.Now = epoch.Add(time.Hour)
	for _, algorithm := range Algorithms() {
		for _, key := range slices.Clone(d.ring.Keys) {
			if key.Algorithm == algorithm && key.State != Spare {
				c := revoke(key)
				c.AcceptRefusals = key.State == Active
				d.do(d.ring.Revoke(d.view, c, d.keys.generate))
			}
		}
	}
	d.pass(4 * time.Hour)
	if got := d.conditions(); got != nil {
		t.Errorf("conditions %v", got)
	}
	if got := d.pass(d.view.Settings.RotationPeriod + 4*time.Hour); len(got) != 6 {
		t.Errorf("events %v, want two rotations", kinds(got))
	}
}

func TestMaxAgeEndsWithTheNextChange(t *testing.T) {
	d := newDays(t)
	period := d.view.Settings.RotationPeriod
	for _, c := range []struct{ before, want time.Duration }{
		{period, time.Hour},
		{time.Hour + time.Second, time.Hour},
		{time.Hour - time.Second, time.Hour - time.Second},
		{1500 * time.Millisecond, time.Second},
		{500 * time.Millisecond, 0},
		{0, time.Minute}, // overdue: it is not known when it comes
		{-time.Hour, time.Minute},
	} {
		d.view.Now = epoch.Add(period - c.before)
		if got := d.ring.Plan(d.view).MaxAge; got != c.want {
			t.Errorf("%s before the rotation: max-age %s, want %s", c.before, got, c.want)
		}
	}
}

func TestStepKeepsTheRingIfNoKeyCanBeMade(t *testing.T) {
	d := newDays(t)
	d.view.Now = d.view.Now.Add(d.view.Settings.RotationPeriod)
	broken := errors.New("no entropy")
	_, err := d.ring.Step(d.view, func(identity.Algorithm) (crypto.Signer, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	old := d.ring.Keys[3].Private
	_, err = d.ring.Step(d.view, func(algorithm identity.Algorithm) (crypto.Signer, error) {
		if algorithm == identity.ES256 {
			return old, nil
		}
		return d.keys.generate(algorithm)
	})
	if err == nil || !strings.Contains(err.Error(), "no key is used twice") {
		t.Errorf("error %v, want that a key was used before", err)
	}
}

func TestExposure(t *testing.T) {
	d := newDays(t)
	d.view.Now = epoch.Add(10 * time.Hour)
	d.view.Gates = []Gate{{Name: "bank"}}
	show := func(all []Exposure) string {
		var b strings.Builder
		for _, e := range all {
			fmt.Fprintf(&b, "%s %s %v\n", e.Model, e.For, e.Unbounded)
		}
		return b.String()
	}
	refused := "M0 0s false\nM1 0s false\nM2 6h1m0s false\nM3 18h1m0s false\nM4 0s true\nM5 0s false\n"
	if diff := cmp.Diff(refused, show(d.one(Spare).RefusedFor(d.view))); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	accepted := "M0 52h4m30s true\nM1 1h1m0s false\nM2 12h1m0s false\nM3 24h1m0s false\nM4 52h4m30s true\nM5 52h4m30s true\n"
	if diff := cmp.Diff(accepted, show(d.one(Active).AcceptedFor(d.view))); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	// A spare that was stolen has signed nothing here, but the thief's tokens are accepted all the same.
	stolen := "M0 0s true\nM1 1h1m0s false\nM2 12h1m0s false\nM3 24h1m0s false\nM4 0s true\nM5 0s true\n"
	if diff := cmp.Diff(stolen, show(d.one(Spare).AcceptedFor(d.view))); diff != "" {
		t.Errorf("accepted of a spare (-want +got):\n%s", diff)
	}
	// A key that is not even in the documents is unknown, however much time has passed.
	d.view.Gates, d.view.Documents = nil, &Gate{Name: "ConfigMap"}
	hidden := "M0 1m0s false\nM1 5h1m0s false\nM2 16h1m0s false\nM3 28h1m0s false\nM4 0s false\nM5 1m0s false\n"
	if diff := cmp.Diff(hidden, show(d.one(Spare).RefusedFor(d.view))); diff != "" {
		t.Errorf("refused, hidden (-want +got):\n%s", diff)
	}
}
