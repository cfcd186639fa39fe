package externalsigner_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func settings(t testing.TB) keys.Settings {
	t.Helper()
	complete := testkit.Need(keys.Settings{}.Complete())(t)
	return complete
}

func view(t testing.TB, now time.Time) keys.View { return keys.View{Settings: settings(t), Now: now} }

// announce returns what a signer announces that read these keys at a time.
func announce(t *testing.T, at time.Time, of ...externalsignertest.Key) externalsigner.Announcement {
	t.Helper()
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.Keys, s.DataTimestamp = of, at })
	return keysOf(t, fake)
}

func observe(t *testing.T, ledger externalsigner.Ledger, announced externalsigner.Announcement, now time.Time) externalsigner.Observation {
	t.Helper()
	observed := testkit.Need(ledger.Observe(announced, view(t, now)))(t)
	testkit.Must(t, observed.Ledger.Validate())
	return observed
}

// maySign fails unless the answer is the reason; none stands for yes.
func maySign(t *testing.T, ledger externalsigner.Ledger, id string, now time.Time, want externalsigner.Reason) error {
	t.Helper()
	err := ledger.MaySign(identity.KeyID(id), view(t, now))
	if reasonOf(err) != want {
		t.Errorf("at %s key %s: %v, want reason %q", now, id, err, want)
	}
	return err
}

func published(ledger externalsigner.Ledger) []identity.KeyID {
	var list []identity.KeyID
	for _, key := range ledger.Published() {
		list = append(list, key.ID)
	}
	return list
}

func TestFirstKeysNeedNoWaiting(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.RS256)
	first := observe(t, externalsigner.Ledger{}, announce(t, start, a, b), start)
	if !first.Changed {
		t.Fatal("nothing is to be saved")
	}
	maySign(t, first.Ledger, "a", start, "")
	maySign(t, first.Ledger, "c", start, externalsigner.ReasonUnknownKey)
	if diff := cmp.Diff([]identity.KeyID{"b", "a"}, published(first.Ledger)); diff != "" {
		t.Errorf("published, RS256 before ES256 (-want +got):\n%s", diff)
	}
}

// Only a ledger that was never written makes keys the first ones.
func TestFirstKeysOfAnIssuerThatHadOthersWait(t *testing.T) {
	a := externalsignertest.NewKey("a", identity.ES256)
	moved := externalsigner.Ledger{StartedAt: start.Add(-time.Hour)}
	maySign(t, observe(t, moved, announce(t, start, a), start).Ledger, "a", start, externalsigner.ReasonTooYoung)
}

func TestLaterKeyWaitsFromWhenItWasFoundStored(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.ES256)
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a), start).Ledger
	ledger = observe(t, ledger, announce(t, start, a), start).Ledger

	announced := announce(t, start.Add(time.Hour), a, b)
	added := observe(t, ledger, announced, start.Add(time.Hour))
	if diff := cmp.Diff([]identity.KeyID{"b"}, added.Added); diff != "" || !added.Changed {
		t.Errorf("changed %v, added (-want +got):\n%s", added.Changed, diff)
	}
	wait := settings(t).Wait()
	// It was never found stored: however long ago it was announced, it must wait.
	err := maySign(t, added.Ledger, "b", start.Add(100*wait), externalsigner.ReasonTooYoung)
	if ready := err.(*externalsigner.Error).ReadyAt; !ready.Equal(start.Add(101 * wait)) {
		t.Errorf("ready at %s", ready)
	}

	// The write took two hours.
	foundAt := start.Add(3*time.Hour + time.Millisecond)
	confirmed := observe(t, added.Ledger, announced, foundAt)
	if !confirmed.Changed || len(confirmed.Added) > 0 {
		t.Errorf("changed %v, added %v", confirmed.Changed, confirmed.Added)
	}
	ready := start.Add(3*time.Hour + time.Second).Add(wait)
	err = maySign(t, confirmed.Ledger, "b", ready.Add(-time.Nanosecond), externalsigner.ReasonTooYoung)
	if got := err.(*externalsigner.Error).ReadyAt; !got.Equal(ready) {
		t.Errorf("ready at %s, want %s", got, ready)
	}
	maySign(t, confirmed.Ledger, "b", ready, "")
	maySign(t, confirmed.Ledger, "a", start, "")

	again := observe(t, confirmed.Ledger, announced, ready)
	if diff := cmp.Diff(confirmed.Ledger, again.Ledger); diff != "" || again.Changed {
		t.Errorf("the same announcement changed the ledger (-want +got):\n%s", diff)
	}
}

// If the documents are watched, a key counts from when they show it, and a gate must know it besides.
func TestKeyWaitsForDocumentsAndGates(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.ES256)
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a), start).Ledger
	announced := announce(t, start, a, b)
	ledger = observe(t, ledger, announced, start).Ledger
	v := view(t, start.Add(time.Hour))
	v.Documents = &keys.Gate{Name: "the ConfigMap", Knows: []identity.KeyID{"a"}}
	behind := testkit.Need(ledger.Observe(announced, v))(t)
	maySign(t, behind.Ledger, "b", start.Add(100*settings(t).Wait()), externalsigner.ReasonTooYoung)
	v.Documents.Knows = []identity.KeyID{"a", "b"}
	shown := testkit.Need(behind.Ledger.Observe(announced, v))(t)
	v.Now = v.Now.Add(settings(t).Wait())
	v.Gates = []keys.Gate{{Name: "an upload", Knows: []identity.KeyID{"a"}}}
	if err := shown.Ledger.MaySign("b", v); reasonOf(err) != externalsigner.ReasonGates || !strings.Contains(err.Error(), "an upload") {
		t.Errorf("%v, want %s", err, externalsigner.ReasonGates)
	}
	v.Gates[0].Knows = v.Documents.Knows
	testkit.Expect(t, shown.Ledger.MaySign("b", v))
}

// A clock that was set back within its bounds makes no key older; one that is far off is not followed.
func TestClockOfTheLedger(t *testing.T) {
	a, b, c := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.ES256), externalsignertest.NewKey("c", identity.ES256)
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a), start).Ledger
	ledger = observe(t, ledger, announce(t, start, a, b), start).Ledger
	ledger = observe(t, ledger, announce(t, start, a, b), start).Ledger
	ledger = observe(t, ledger, announce(t, start, a, b, c), start.Add(-time.Hour)).Ledger
	ledger = observe(t, ledger, announce(t, start, a, b, c), start.Add(-time.Hour)).Ledger
	if at := ledger.Keys[2].PublishedAt; !at.Equal(start) {
		t.Errorf("published at %s, want %s", at, start)
	}
	skew := settings(t).ClockSkew
	for i, key := range ledger.Keys {
		if i == 2 {
			ledger.Keys[i].PublishedAt = time.Time{}
		} else {
			ledger.Keys[i].PublishedAt = key.PublishedAt.AddDate(50, 0, 0)
		}
	}
	ledger = observe(t, ledger, announce(t, start, a, b, c), start).Ledger
	if at := ledger.Keys[2].PublishedAt; !at.Equal(start.Add(2 * skew)) {
		t.Errorf("published at %s, want %s", at, start.Add(2*skew))
	}
}

func TestKidStaysWithItsKey(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.ES256)
	other := externalsignertest.NewKey("b", identity.ES256)
	excluded := other
	excluded.Excluded = true
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a, b), start).Ledger
	gone := observe(t, ledger, announce(t, start.Add(1), a), start.Add(1))
	if diff := cmp.Diff([]identity.KeyID{"b"}, gone.Withdrawn); diff != "" || !gone.Changed {
		t.Errorf("changed %v, withdrawn (-want +got):\n%s", gone.Changed, diff)
	}
	maySign(t, gone.Ledger, "b", start, externalsigner.ReasonUnknownKey)

	b2 := b
	b2.Excluded = true
	hidden := observe(t, externalsigner.Ledger{}, announce(t, start, a, b2), start).Ledger
	if ids := published(hidden); len(ids) != 1 {
		t.Errorf("published %v", ids)
	}

	for name, ledger := range map[string]externalsigner.Ledger{"published": ledger, "withdrawn": gone.Ledger, "excluded": hidden} {
		for _, swapped := range []externalsignertest.Key{other, excluded} {
			_, err := ledger.Observe(announce(t, start, a, swapped), view(t, start.Add(2)))
			if reasonOf(err) != externalsigner.ReasonKeyChanged {
				t.Errorf("%s, swapped (excluded %v): %v, want %s", name, swapped.Excluded, err, externalsigner.ReasonKeyChanged)
			}
		}
	}

	// The same key may come back, and waits again.
	back := observe(t, gone.Ledger, announce(t, start.Add(3), a, b), start.Add(3))
	maySign(t, back.Ledger, "b", start.Add(4), externalsigner.ReasonTooYoung)
	if len(back.Ledger.Withdrawn) > 0 {
		t.Errorf("withdrawn: %v", back.Ledger.Withdrawn)
	}
	if diff := cmp.Diff([]identity.KeyID{"b"}, back.Returned); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
	if fresh := observe(t, ledger, announce(t, start.Add(3), a, b, externalsignertest.NewKey("c", identity.ES256)), start.Add(3)); len(fresh.Returned) > 0 {
		t.Errorf("a new key is taken for one that came back: %v", fresh.Returned)
	}
}

func TestTimestampsOfAnnouncements(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.ES256)
	now := start.Add(time.Hour)
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a), start).Ledger
	ledger = observe(t, ledger, announce(t, now, a, b), now).Ledger
	late := observe(t, ledger, announce(t, now.Add(-time.Second), a), now)
	if !late.Outdated || len(published(late.Ledger)) != 2 {
		t.Errorf("outdated %v, published %v", late.Outdated, published(late.Ledger))
	}
	if same := observe(t, late.Ledger, announce(t, now.Add(-time.Second), a, b), now); same.Outdated {
		t.Error("an announcement of the same keys is reported as outdated")
	}
	bound := now.Add(2 * settings(t).ClockSkew)
	for _, c := range []struct {
		at   time.Time
		want externalsigner.Reason
	}{{bound, ""}, {bound.Add(time.Second), externalsigner.ReasonDataTimestamp}} {
		if _, err := ledger.Observe(announce(t, c.at, a), view(t, now)); reasonOf(err) != c.want {
			t.Errorf("an announcement of %s at %s: %v, want reason %q", c.at, now, err, c.want)
		}
	}
}

func TestPublishedDependsOnContentAlone(t *testing.T) {
	var all []externalsignertest.Key
	for i := range 4 {
		all = append(all, externalsignertest.NewKey(fmt.Sprint("e", i), identity.ES256))
	}
	all = append(all, externalsignertest.NewKey("r", identity.RS256))
	want := published(observe(t, externalsigner.Ledger{}, announce(t, start, all...), start).Ledger)
	slices.Reverse(all)
	some := observe(t, externalsigner.Ledger{}, announce(t, start, all[2:]...), start).Ledger
	if diff := cmp.Diff(want, published(observe(t, some, announce(t, start, all...), start).Ledger)); diff != "" {
		t.Errorf("other order (-want +got):\n%s", diff)
	}
}

func TestWithdrawnIsBounded(t *testing.T) {
	key, hidden := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("hidden", identity.ES256)
	hidden.Excluded = true
	announced := announce(t, start, key, hidden)
	var ledger externalsigner.Ledger
	for i := range 200 {
		announced.Published[0].ID = identity.KeyID(fmt.Sprint("key-", i))
		ledger = observe(t, ledger, announced, start).Ledger
		// An excluded key is kept, as it would be entered again at once.
		if !slices.ContainsFunc(ledger.Withdrawn, func(k externalsigner.WithdrawnKey) bool { return k.ID == "hidden" }) {
			t.Fatalf("after %d keys an excluded key is forgotten", i)
		}
	}
	if len(ledger.Withdrawn) != 128 {
		t.Errorf("%d are remembered", len(ledger.Withdrawn))
	}
	if again := observe(t, observe(t, ledger, announced, start).Ledger, announced, start); again.Changed {
		t.Error("the ledger does not come to rest")
	}
}

func TestLedgerJSON(t *testing.T) {
	a, b := externalsignertest.NewKey("a", identity.ES256), externalsignertest.NewKey("b", identity.RS256)
	ledger := observe(t, externalsigner.Ledger{}, announce(t, start, a, b), start).Ledger
	ledger = observe(t, ledger, announce(t, start, a), start).Ledger
	data := testkit.Need(ledger.Encode())(t)
	read := testkit.Need(externalsigner.DecodeLedger(data))(t)
	if diff := cmp.Diff(ledger, read); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	// One that a person edited, with a field that stands twice, and one in another case.
	edited := bytes.Replace(data, []byte(`"startedAt":`), []byte(`"startedAt": "2001-01-01T00:00:00Z", "startedAt":`), 1)
	if read, err := externalsigner.DecodeLedger(edited); err != nil || !cmp.Equal(ledger, read) || bytes.Equal(data, edited) {
		t.Errorf("%v, read again (-want +got):\n%s", err, cmp.Diff(ledger, read))
	}
	edited = bytes.Replace(data, []byte(`"startedAt":`), []byte(`"STARTEDAT":`), 1)
	if _, err := externalsigner.DecodeLedger(edited); err == nil || !strings.Contains(err.Error(), `has the field "STARTEDAT", which is spelt "startedAt"`) {
		t.Errorf("a field in another case: %v", err)
	}
	if empty, err := (externalsigner.Ledger{}).Encode(); err != nil || string(empty) != "{}\n" {
		t.Errorf("the zero ledger is %q, %v", empty, err)
	}
	for name, spoil := range map[string]func(*externalsigner.Ledger){
		"no start":             func(l *externalsigner.Ledger) { l.StartedAt = time.Time{} },
		"a kid twice":          func(l *externalsigner.Ledger) { l.Keys = append(l.Keys, l.Keys[0]) },
		"a kid that is gone":   func(l *externalsigner.Ledger) { l.Withdrawn[0].ID = l.Keys[0].ID },
		"no kid":               func(l *externalsigner.Ledger) { l.Keys[0].ID = "" },
		"a garbage key":        func(l *externalsigner.Ledger) { l.Keys[0].SPKI = []byte("garbage") },
		"another algorithm":    func(l *externalsigner.Ledger) { l.Keys[0].Algorithm = identity.RS256 },
		"an invalid hash":      func(l *externalsigner.Ledger) { l.Withdrawn[0].SPKISHA256 = "a" },
		"no time":              func(l *externalsigner.Ledger) { l.Withdrawn[0].At = time.Time{} },
		"too many keys":        func(l *externalsigner.Ledger) { l.Keys = make([]externalsigner.LedgerKey, 9) },
		"too many of the gone": func(l *externalsigner.Ledger) { l.Withdrawn = make([]externalsigner.WithdrawnKey, 129) },
	} {
		spoiled := testkit.Need(externalsigner.DecodeLedger(data))(t)
		spoil(&spoiled)
		if _, err := spoiled.Encode(); err == nil {
			t.Errorf("%s: it is encoded", name)
		}
	}
	for _, garbage := range []string{"", "{", "{}{}", `{"kees":[]}`, "[]", string(data[:40])} {
		if _, err := externalsigner.DecodeLedger([]byte(garbage)); err == nil {
			t.Errorf("%q was taken", garbage)
		}
	}
}
