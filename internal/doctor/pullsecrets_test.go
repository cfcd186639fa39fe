package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/inventory"
)

// Passwords are made after the token: those of a new one are not missed, unless there is a reason for it.
func TestPasswordsOfSecrets(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { when := now.Add(d); return &when }
	fresh := inventory.Passwords{Made: true, Current: true, Renews: at(time.Minute)}
	failure := &inventory.Warning{Time: now, Reason: "RegistryRefused", Message: "no"}
	known := &inventory.Report{}
	for _, s := range []struct {
		name      string
		issued    time.Duration // before now
		expires   *time.Time
		passwords *inventory.Passwords
		failure   *inventory.Warning
	}{
		{"fresh", time.Hour, at(time.Hour), &fresh, nil},
		{"other", time.Hour, at(time.Hour), nil, nil},
		{"new", lateness - time.Second, at(time.Hour), &inventory.Passwords{}, nil},
		{"refused", time.Second, at(time.Hour), &inventory.Passwords{}, failure},
		{"unmade", lateness, at(time.Hour), &inventory.Passwords{}, nil},
		{"renewed", time.Second, at(time.Hour), &inventory.Passwords{Made: true, Renews: at(time.Minute)}, nil},
		{"stale", lateness, at(time.Hour), &inventory.Passwords{Made: true, Renews: at(time.Minute)}, nil},
		{"due", time.Hour, at(time.Hour), &inventory.Passwords{Made: true, Current: true, Renews: at(-lateness)}, nil},
		{"overdue", time.Hour, at(time.Hour), &inventory.Passwords{Made: true, Current: true, Renews: at(-lateness - time.Second)}, nil},
		{"garbled", time.Hour, at(time.Hour), &inventory.Passwords{Made: true, Current: true}, nil},
		{"expired", time.Hour, at(0), &inventory.Passwords{}, nil},
		{"empty", time.Hour, nil, &inventory.Passwords{}, nil},
	} {
		known.Identities = append(known.Identities, &inventory.Identity{Deliveries: []*inventory.Delivery{{
			Namespace: "n", Secret: s.name, Issued: now.Add(-s.issued), Expires: s.expires, Passwords: s.passwords, LastFailure: s.failure,
		}}})
	}
	d := &Examination{Now: func() time.Time { return now }}
	want := passwords{
		count: 11, fresh: 2, namespaces: map[string]bool{"n": true},
		none: []string{"n/refused, RegistryRefused: no", "n/unmade"}, stale: []string{"n/stale"}, overdue: []string{"n/overdue", "n/garbled"},
	}
	if diff := cmp.Diff(want, d.passwords(known), cmp.AllowUnexported(passwords{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
