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

// The program that makes passwords must run, and have the Secrets of each namespace that lists registries.
func TestProgramThatMakesPasswords(t *testing.T) {
	const binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {namespace: team, name: 'credence:registry:secrets'}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'credence:registry:secrets'}\nsubjects: [{kind: ServiceAccount, namespace: credence-system, name: "
	runs := lease("credence-registry", "registry-1", time.Second)
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"runs":            {joined(runs, binding+"credence-registry}]"), []string{"pass: the passwords in 1 Secret are fresh"}},
		"does not run":    {binding + "credence-registry}]", []string{"fail: no credence-registry holds the Lease credence-system/credence-registry", "pass: "}},
		"has no right":    {runs, []string{"fail: it has no RoleBinding credence:registry:secrets", "pass: "}},
		"of another user": {joined(runs, binding+"other}]"), []string{"fail: it has no RoleBinding", "pass: "}},
		"is not seen":     {joined(deny("get", "leases"), deny("list", "rolebindings")), []string{"skipped: leases", "skipped: you may not list rolebindings in namespace team", "pass: "}},
	} {
		t.Run(name, func(t *testing.T) {
			found, expires, renews := &Diagnosis{}, now.Add(time.Hour), now.Add(time.Minute)
			known := &inventory.Report{Identities: []*inventory.Identity{{Deliveries: []*inventory.Delivery{{
				Namespace: "team", Secret: "s", Issued: now.Add(-time.Hour), Expires: &expires, Passwords: &inventory.Passwords{Made: true, Current: true, Renews: &renews},
			}}}}}
			examination().checkPullSecrets(t.Context(), found, open(t, test.objects), known)
			expect(t, found, test.want...)
		})
	}
	found := &Diagnosis{}
	examination().checkPullSecrets(t.Context(), found, open(t, ""), &inventory.Report{})
	expect(t, found)
}
