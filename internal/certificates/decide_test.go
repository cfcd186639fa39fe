package certificates

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

const day = 24 * time.Hour

var (
	noon     = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	settings = Settings{AuthorityLifetime: 360 * day, Overlap: 10 * time.Minute}
)

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		testkit.Must(t, err)
		return value
	}
}

// world is what a leader has stored, and what it writes.
type world struct {
	t      testing.TB
	now    time.Time
	wanted []Wanted
	found  Found
	// served are the certificates that processes show: those of the Secrets, some time later.
	served map[string]pki.Pair
	// objects that cannot be written.
	stuck map[string]bool
}

func newWorld(t testing.TB) *world {
	wanted := must[[]Wanted](t)(All([]string{"credence-apiserver", "credence-webhook"}, Hosts{Namespace: "credence-system", ClusterDomain: "cluster.local"}, 30*day))
	return &world{t: t, now: noon, wanted: wanted, served: map[string]pki.Pair{}, stuck: map[string]bool{}, found: Found{
		Certificates: map[string]Stored{}, Bundles: map[string][][]byte{"an APIService": {nil}, "webhooks": {nil, nil}},
	}}
}

func (w *world) decide() Plan { return Decide(w.found, w.wanted, settings, w.now) }

// step carries out one write of a plan, the first that can be; it reports whether there was one.
func (w *world) step() bool {
	w.t.Helper()
	plan := w.decide()
	if plan.NewAuthority != "" {
		pair := must[pki.Pair](w.t)(pki.New("test", settings.AuthorityLifetime, w.now, rand.Reader))
		w.found.Authority = Stored{pair, append(bytes.Clone(pair.Certificate), plan.Bundle...)}
		return true
	}
	if !plan.BundleStored {
		w.found.Authority.Bundle = plan.Bundle
		return true
	}
	for _, name := range plan.Objects {
		if !w.stuck[name] {
			for i := range w.found.Bundles[name] {
				w.found.Bundles[name][i] = plan.Bundle
			}
			return true
		}
	}
	for _, issue := range plan.Issue {
		authority := must[*pki.Authority](w.t)(pki.Load(w.found.Authority.Certificate, w.found.Authority.Key, w.now))
		pair := must[pki.Pair](w.t)(authority.Issue(issue.Wanted.Request, w.now, rand.Reader))
		w.found.Certificates[issue.Wanted.Name] = Stored{pair, plan.Bundle}
		return true
	}
	for _, name := range plan.Rebundle {
		w.found.Certificates[name] = Stored{w.found.Certificates[name].Pair, plan.Bundle}
		return true
	}
	return false
}

// settle carries out all that is to be done now, and holds to it after each write that what is served is trusted.
func (w *world) settle(trusted bool) {
	w.t.Helper()
	for range 100 {
		if trusted {
			w.check()
		}
		if !w.step() {
			return
		}
	}
	w.t.Fatal("it never ends")
}

// check verifies each certificate that is served, and each that is stored, by every bundle of an object.
func (w *world) check() {
	w.t.Helper()
	for name, bundles := range w.found.Bundles {
		for _, bundle := range bundles {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(bundle)
			for _, wanted := range w.wanted {
				for what, pair := range map[string]pki.Pair{"served": w.served[wanted.Name], "stored": w.found.Certificates[wanted.Name].Pair} {
					if len(pair.Certificate) == 0 {
						continue
					}
					leaf := must[*x509.Certificate](w.t)(pki.Inspect(pair, wanted.Request, w.now))
					if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: w.now, DNSName: wanted.Name + ".credence-system.svc"}); err != nil {
						w.t.Fatalf("%s: the %s certificate of %s is not trusted by %s: %v", w.now, what, wanted.Name, name, err)
					}
				}
			}
		}
	}
}

func (w *world) serve() {
	for name, stored := range w.found.Certificates {
		w.served[name] = stored.Pair
	}
}

func (w *world) authorities() int { return len(pki.Authorities(w.found.Authority.Bundle)) }

// Two years in steps of what the plan itself names: at no moment is a certificate served, or stored, that a bundle does not trust, and
// processes may take new ones up to the overlap later.
func TestTwoYears(t *testing.T) {
	w := newWorld(t)
	w.settle(false)
	w.serve()
	made, authorities, most := map[string]bool{}, map[string]bool{}, 0
	for end := noon.Add(700 * day); w.now.Before(end); {
		next := w.decide().Next
		if !next.After(w.now) {
			t.Fatalf("%s: the next look is at %s", w.now, next)
		}
		w.now = next
		w.settle(true)
		most = max(most, w.authorities())
		for name, stored := range w.found.Certificates {
			made[name+string(stored.Certificate)] = true
		}
		authorities[string(w.found.Authority.Certificate)] = true
		w.now = w.now.Add(settings.Overlap - time.Second)
		w.settle(true)
		w.serve()
	}
	// One is made every 20 days, one authority every 240, and all once more for each new authority.
	if len(made) < 2*35 || len(made) > 2*(35+2) || len(authorities) != 3 || most != 2 {
		t.Errorf("%d certificates of %d authorities were made, and %d authorities trusted at once", len(made), len(authorities), most)
	}
	if w.authorities() != 1 {
		t.Errorf("in the end %d authorities are trusted", w.authorities())
	}
}

func TestDecide(t *testing.T) {
	other := must[pki.Pair](t)(pki.New("other", settings.AuthorityLifetime, noon, rand.Reader))
	foreign := must[*pki.Authority](t)(pki.Load(other.Certificate, other.Key, noon))
	for name, test := range map[string]struct {
		change func(*world)
		want   string // the plan, as text
	}{
		"nothing": {func(*world) {}, ""},
		"at first": {func(w *world) {
			w.found.Authority, w.found.Certificates, w.found.Bundles = Stored{}, nil, map[string][][]byte{"a": {nil}}
		}, "authority: it is missing"},
		"an authority without its key":           {func(w *world) { w.found.Authority.Key = nil }, "authority: read"},
		"an authority with the key of another":   {func(w *world) { w.found.Authority.Key = other.Key }, "authority: read"},
		"an authority that is not one":           {func(w *world) { w.found.Authority.Pair = w.found.Certificates["credence-webhook"].Pair }, "authority: read"},
		"an authority with half of its life":     {func(w *world) { w.now = noon.Add(180 * day) }, "made: credence-apiserver it ended, made: credence-webhook it ended"},
		"an authority near its end":              {func(w *world) { w.now = noon.Add(240 * day) }, "authority: the one before ends at 2026-12-28"},
		"an authority that has ended":            {func(w *world) { w.now = noon.Add(400 * day) }, "authority: the certificate authority expired"},
		"a bundle that lost the authority":       {func(w *world) { w.found.Authority.Bundle = nil }, "bundle"},
		"a bundle with more":                     {func(w *world) { w.found.Authority.Bundle = append(w.found.Authority.Bundle, "# note"...) }, "bundle"},
		"an object without a bundle":             {func(w *world) { w.found.Bundles["webhooks"][1] = nil }, "object: webhooks"},
		"an object with the bundle of another":   {func(w *world) { w.found.Bundles["an APIService"][0] = other.Certificate }, "object: an APIService"},
		"an object that is gone":                 {func(w *world) { delete(w.found.Bundles, "webhooks") }, ""},
		"a new object":                           {func(w *world) { w.found.Bundles["new"] = [][]byte{nil} }, "object: new"},
		"a certificate that is missing":          {func(w *world) { delete(w.found.Certificates, "credence-webhook") }, "made: credence-webhook it is missing"},
		"a certificate without its key":          {func(w *world) { w.store(func(s *Stored) { s.Key = nil }) }, "made: credence-webhook read the certificate"},
		"a certificate for other names":          {func(w *world) { w.wanted[1].Request.Hosts = []string{"localhost"} }, "made: credence-webhook it is for"},
		"a certificate from the future":          {func(w *world) { w.now = noon.Add(-day) }, "made: credence-apiserver it is valid from, made: credence-webhook it is valid from"},
		"a certificate of a foreign authority":   {func(w *world) { w.sign(foreign) }, "made: credence-webhook it was signed by an authority that is not trusted"},
		"a certificate two thirds into its life": {func(w *world) { w.now = noon.Add(20 * day) }, "made: credence-apiserver the one before ends, made: credence-webhook the one before ends"},
		"a second before that":                   {func(w *world) { w.now = noon.Add(20*day - time.Second) }, ""},
		"a shorter lifetime from now on":         {func(w *world) { w.wanted[0].Request.Lifetime, w.now = day, noon.Add(17*time.Hour) }, "made: credence-apiserver the one before ends"},
		"a Secret with an old bundle":            {func(w *world) { w.store(func(s *Stored) { s.Bundle = other.Certificate }) }, "beside: credence-webhook"},
		"a new authority, trusted everywhere":    {func(w *world) { w.replaceAuthority() }, ""},
		"the same, a second before the overlap is over": {func(w *world) {
			w.replaceAuthority()
			w.now = w.now.Add(settings.Overlap - time.Second)
		}, ""},
		"the same, when the overlap is over": {func(w *world) {
			w.replaceAuthority()
			w.now = w.now.Add(settings.Overlap)
		}, "made: credence-apiserver there is a new authority, made: credence-webhook there is a new authority"},
		"a lost Secret, and an object that cannot be written": {func(w *world) {
			w.found.Bundles["webhooks"][0] = nil
			delete(w.found.Certificates, "credence-webhook")
		}, "object: webhooks, made: credence-webhook it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(false)
			test.change(w)
			got := text(w.decide())
			want := strings.Split(test.want, ", ")
			if test.want == "" {
				want = nil
			}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func (w *world) replaceAuthority() {
	w.found.Authority = Stored{}
	w.settle(true)
}

func (w *world) store(change func(*Stored)) {
	stored := w.found.Certificates["credence-webhook"]
	change(&stored)
	w.found.Certificates["credence-webhook"] = stored
}

func (w *world) sign(by *pki.Authority) {
	w.store(func(s *Stored) { s.Pair = must[pki.Pair](w.t)(by.Issue(w.wanted[1].Request, w.now, rand.Reader)) })
}

func text(plan Plan) (all []string) {
	if plan.NewAuthority != "" {
		return []string{"authority: " + plan.NewAuthority}
	}
	if !plan.BundleStored {
		all = append(all, "bundle")
	}
	for _, name := range plan.Objects {
		all = append(all, "object: "+name)
	}
	for _, issue := range plan.Issue {
		all = append(all, fmt.Sprintf("made: %s %s", issue.Wanted.Name, issue.Reason))
	}
	for _, name := range plan.Rebundle {
		all = append(all, "beside: "+name)
	}
	if len(all) == 0 != plan.Empty() {
		all = append(all, "the plan is empty: "+fmt.Sprint(plan.Empty()))
	}
	return all
}

// A lost authority is replaced at once, and trusted beside the lost one, which the objects still name, until nothing of it is served.
func TestALostAuthorityIsOverlapped(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"the authority":                func(w *world) { w.found.Authority = Stored{} },
		"its key":                      func(w *world) { w.found.Authority.Key = nil },
		"its key and what was trusted": func(w *world) { w.found.Authority.Key, w.found.Authority.Bundle = nil, nil },
		"all Secrets":                  func(w *world) { w.found.Authority, w.found.Certificates = Stored{}, map[string]Stored{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(false)
			w.serve()
			w.now = noon.Add(day)
			lose(w)
			w.settle(true)
			if w.authorities() != 2 {
				t.Fatalf("%d authorities are trusted, want the lost one beside the new one", w.authorities())
			}
			for range 4 {
				w.now = w.now.Add(settings.Overlap - time.Second)
				w.settle(true)
				w.serve()
			}
			if w.authorities() != 1 {
				t.Errorf("%d authorities are trusted in the end", w.authorities())
			}
		})
	}
}

// A new authority signs nothing that could wait while an object does not have it.
func TestAnObjectThatCannotBeWrittenHoldsReplacement(t *testing.T) {
	w := newWorld(t)
	w.settle(false)
	w.serve()
	w.stuck["webhooks"] = true
	w.now = noon.Add(20 * day)
	w.settle(true)
	w.serve()
	for next := w.decide().Next; next.Before(noon.Add(249 * day)); next = w.decide().Next {
		w.now = next
		w.settle(true)
		w.serve()
	}
	if got := text(w.decide()); !slices.Equal(got, []string{"object: webhooks"}) {
		t.Errorf("the plan is %q", got)
	}
	w.stuck["webhooks"] = false
	for range 2 {
		w.settle(true)
		w.serve()
		w.now = w.now.Add(settings.Overlap)
	}
	w.settle(true)
	if got := w.authorities(); got != 1 {
		t.Errorf("%d authorities are trusted in the end", got)
	}
}

func TestAll(t *testing.T) {
	hosts := Hosts{Namespace: "credence-system", ClusterDomain: "example.org", More: map[string][]string{"credence-discovery": {"id.example.com", "192.0.2.1"}}}
	all := must[[]Wanted](t)(All([]string{"credence-discovery", "credence-discovery", "credence-agent"}, hosts, day))
	if len(all) != 2 || all[0].Secret() != "credence-discovery-tls" {
		t.Fatalf("got %+v", all)
	}
	want := []string{"credence-discovery.credence-system.svc", "credence-discovery.credence-system", "credence-discovery", "credence-discovery.credence-system.svc.example.org", "localhost", "id.example.com"}
	if got := all[0].Request; !slices.Equal(got.Hosts, want) || fmt.Sprint(got.IPs) != "[127.0.0.1 ::1 192.0.2.1]" {
		t.Errorf("got %v and %v", got.Hosts, got.IPs)
	}
	for _, components := range [][]string{{"credence-agent"}, {"credence"}} {
		if _, err := All(components, hosts, day); err == nil {
			t.Errorf("%v: no error", components)
		}
	}
}
