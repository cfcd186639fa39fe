package keys

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

func away(distance time.Duration) *metav1.Time {
	t := metav1.NewTime(rotationTime().Add(distance).In(time.FixedZone("elsewhere", 3600)))
	return &t
}

func TestTheTableOfKeys(t *testing.T) {
	ring := &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{
		Keys: []v1alpha1.KeyStatus{
			{ID: "first", Algorithm: "RS256", State: "active", PublishedAt: away(-40 * 24 * time.Hour), SignsSince: away(-31 * 24 * time.Hour)},
			{ID: "second", Algorithm: "RS256", State: "spare", PublishedAt: away(-time.Hour), ReadyAt: away(28 * time.Hour)},
			{ID: "third", Algorithm: "RS256", State: "retiring", PublishedAt: away(-99 * 24 * time.Hour), SignsSince: away(-60 * 24 * time.Hour), RetiredAt: away(-time.Hour), LastExpiry: away(47 * time.Hour), RemovableAt: away(49 * time.Hour)},
			{ID: "fourth", Algorithm: "ES256", State: "spare"},
			{ID: "fifth", Algorithm: "ES256", State: "spare", PublishedAt: away(-48 * time.Hour), ReadyAt: away(-time.Hour)},
			{ID: "evil\x1b[2J\n", Algorithm: "\u202eES256", State: "a\tb"},
		},
		Next: []v1alpha1.PlannedChange{
			{Change: "Activate", Algorithm: "ES256", Key: "fifth", Time: *away(-time.Hour)},
			{Change: "Rotate", Algorithm: "RS256", Key: "second", Time: *away(28 * time.Hour), Awaits: []string{"bank", "the documents"}},
			{Change: "Remove", Algorithm: "RS256", Key: "third", Time: *away(49 * time.Hour)},
			{Change: "Unheard", Algorithm: "ES256", Key: "fourth", Time: *away(49 * time.Hour)},
		},
		Requests:       []v1alpha1.RequestedRotation{{Algorithm: "RS256", Time: *away(-5 * time.Minute), By: "jane"}},
		RelyingParties: []v1alpha1.RelyingPartyStatus{{Name: "bank", MissingKeys: []string{"first", "second"}}, {Name: "shop"}},
		Documents:      &v1alpha1.PublishedDocuments{From: "https://issuer.example/jwks", Message: "timeout\nof 5s"},
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoSigningKey", Message: "ES256: no token is signed"},
			{Type: "Rotating", Status: metav1.ConditionTrue, Reason: "OnTime", Message: "not shown"},
			{Type: "Other", Status: metav1.ConditionUnknown},
		},
	}}
	const remarks = `rotation of the RS256 key was requested by jane, 2026-07-01T11:55:00Z (5m ago)
relying party bank has not been given: first, second
the published documents of https://issuer.example/jwks could not be read: timeout\nof 5s
Ready is False, NoSigningKey: ES256: no token is signed
Other is Unknown, no reason given
`
	const table = `
KID               ALGORITHM     STATE      PUBLISHED   SIGNS SINCE   LAST EXPIRY   NEXT CHANGE
first             RS256         active     40d ago     31d ago       -             retires 2026-07-02T16:00:00Z (in 28h), if the spare is known to bank, the documents
second            RS256         spare      60m ago     -             -             signs 2026-07-02T16:00:00Z (in 28h), if the spare is known to bank, the documents
third             RS256         retiring   99d ago     60d ago       in 47h        is removed 2026-07-03T13:00:00Z (in 2d1h)
fourth            ES256         spare      -           -             -             is found in the published documents
fifth             ES256         spare      2d ago      -             -             signs as soon as the program that rotates the keys comes to it
evil\u001b[2J\n   \u202eES256   a\tb       -           -             -             -
`
	var out bytes.Buffer
	testkit.Must(t, printKeys(&out, ring, rotationTime(), false))
	if diff := cmp.Diff(strings.TrimPrefix(table, "\n")+remarks, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	out.Reset()
	testkit.Must(t, printKeys(&out, ring, rotationTime(), true))
	const wide = "2026-05-02T12:00:00Z (60d ago)   2026-07-03T11:00:00Z (in 47h)   -                                2026-07-01T11:00:00Z (60m ago)   is removed"
	if !strings.Contains(out.String(), wide) {
		t.Errorf("the wide table\n%s\nhas no line with %q", out.String(), wide)
	}
}

func TestExposuresInWords(t *testing.T) {
	exposure := func(d time.Duration, unbounded bool) v1alpha1.Exposure {
		return v1alpha1.Exposure{Duration: metav1.Duration{Duration: d}, Unbounded: unbounded}
	}
	for _, test := range []struct {
		of                v1alpha1.Exposure
		refused, accepted string
	}{
		{exposure(0, false), "not at all", "not at all"},
		{exposure(28*time.Hour+time.Minute, false), "28h1m", "28h1m"},
		{exposure(0, true), "until an admin gives it to them", "until an admin removes the key there"},
		{exposure(time.Hour, true), "until an admin gives it to them", "1h; those of a thief until an admin removes the key there"},
	} {
		if r, a := refused(test.of), accepted(test.of); r != test.refused || a != test.accepted {
			t.Errorf("%+v is refused %q and accepted %q, want %q and %q", test.of, r, a, test.refused, test.accepted)
		}
		if none([]v1alpha1.Exposure{test.of}) != (test.refused == "not at all") {
			t.Errorf("none(%+v): %v", test.of, none([]v1alpha1.Exposure{test.of}))
		}
	}
}

func TestPeriod(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 30 * time.Second: "30s", 10 * time.Minute: "10m", time.Hour: "1h", 20*time.Hour + 10*time.Minute: "20h10m",
		time.Hour + 30*time.Second: "1h0m30s",
	} {
		if got := period(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestHistoryKeepsRevocationsThatTheListHasForgotten(t *testing.T) {
	ring := &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{
		Revoked: []v1alpha1.RevokedKey{
			{ID: "old", Algorithm: "RS256", Time: *away(-99 * 24 * time.Hour), By: "jane", Reason: "leaked"},
			{ID: "new", Algorithm: "ES256", Time: *away(-time.Hour), By: "jane", Reason: "leaked again"},
		},
		History: []v1alpha1.KeyEvent{
			{Time: *away(-time.Hour), Event: "revoked", Algorithm: "ES256", Key: "new", By: "jane", Reason: "leaked again"},
			{Time: *away(-time.Hour), Event: "activated", Algorithm: "ES256", Key: "spare", By: "jane", Reason: "leaked again", AcceptRefusals: true},
		},
	}}
	const want = `TIME                             EVENT                           ALGORITHM   KEY     BY     REASON
2026-03-24T12:00:00Z (99d ago)   revoked                         RS256       old     jane   leaked
2026-07-01T11:00:00Z (60m ago)   revoked                         ES256       new     jane   leaked again
2026-07-01T11:00:00Z (60m ago)   activated (refusals accepted)   ES256       spare   jane   leaked again
`
	var out bytes.Buffer
	testkit.Must(t, printHistory(&out, history(ring), rotationTime()))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestRefusalsAreRecognisedBehindAnAPIAndInAFolder(t *testing.T) {
	inFolder := directoryFailure("rotate", &keys.Refused{Reason: keys.TooYoung, Message: "m"})
	if got := refusedFor(inFolder); got != keys.TooYoung || inFolder.Code != command.ExitRefused {
		t.Errorf("refused for %q with exit code %d", got, inFolder.Code)
	}
	if got := refusedFor(apiFailure("credence", "rotate", errors.New("no route"))); got != "" {
		t.Errorf("an outage is a refusal: %q", got)
	}
}

// A relying party can be given only so many keys: those that are gone make room.
func TestAcknowledgedKeysStayWithinTheLimit(t *testing.T) {
	ring := &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{Keys: []v1alpha1.KeyStatus{{ID: "published"}, {ID: "new"}}}}
	party := v1alpha1.RelyingParty{Name: "bank", KnownKeys: []string{"published"}}
	for i := len(party.KnownKeys); i < maxKnownKeys; i++ {
		party.KnownKeys = append(party.KnownKeys, "gone")
	}
	ring.Spec.RelyingParties = []v1alpha1.RelyingParty{party}
	if _, failed := (&acknowledge{}).edit(ring, "credence", "bank", []string{"new"}); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"published", "new"}, ring.Spec.RelyingParties[0].KnownKeys); diff != "" {
		t.Errorf("known keys (-want +got):\n%s", diff)
	}
}
