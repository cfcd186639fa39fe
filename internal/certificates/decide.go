package certificates

import (
	"bytes"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/pki"
)

// Settings are how long things last.
type Settings struct {
	AuthorityLifetime time.Duration
	// Overlap is how long a new authority is trusted before certificates of the one before are replaced, and how long that one
	// is trusted after the last of these: what reads a bundle, or serves a certificate, may be so much behind.
	Overlap time.Duration
}

// Stored is the content of a Secret with a certificate; the zero value stands for one that is missing.
type Stored struct {
	pki.Pair
	Bundle []byte // PEM of the authorities that are trusted
}

// Found is what there is.
type Found struct {
	Authority    Stored
	Certificates map[string]Stored // by component
	// Bundles are the values of caBundle of objects, by a name for each object: one, or one for each webhook.
	Bundles map[string][][]byte
}

// Plan is what must be done now, in the order of its fields. If it is empty, nothing is to be done before Next.
type Plan struct {
	// NewAuthority is why an authority must be made; empty: it need not. It is trusted beside those of Bundle. The rest of the
	// plan is then decided when it is stored.
	NewAuthority string
	// Bundle is the PEM of the authorities that are trusted.
	Bundle []byte
	// BundleStored is false if Bundle must be put into the Secret of the authority.
	BundleStored bool
	// Objects are those into which Bundle must be written.
	Objects []string
	// Issue are certificates that must be made, with the reasons.
	Issue []Issue
	// Rebundle are components whose Secrets need Bundle beside the certificate that they have.
	Rebundle []string
	// Next is when time alone will require something else.
	Next time.Time
}

// Issue is a certificate that must be made.
type Issue struct {
	Wanted Wanted
	Reason string
}

// Empty reports whether there is nothing to do now.
func (p Plan) Empty() bool {
	return p.NewAuthority == "" && p.BundleStored && len(p.Objects)+len(p.Issue)+len(p.Rebundle) == 0
}

// maxAdopted bounds what is taken over from objects, so that the Secret of the authority can hold it.
const maxAdopted = 32 << 10

// Decide returns what must be done now. The order is what keeps every certificate that is served one that is trusted: a bundle has an
// authority before that signs, and until no certificate of it is served. A certificate that is missing, or that no client accepts, is
// made without waiting.
func Decide(found Found, wanted []Wanted, settings Settings, now time.Time) Plan {
	authority, err := pki.Load(found.Authority.Certificate, found.Authority.Key, now)
	if err != nil {
		if len(found.Authority.Certificate)+len(found.Authority.Key) == 0 {
			err = errors.New("it is missing")
		}
		return Plan{NewAuthority: err.Error(), Bundle: encode(trusted(found, nil, now))}
	}
	current := authority.Certificate()
	others := trusted(found, current, now)
	if !now.Before(due(current, settings.AuthorityLifetime)) {
		return Plan{NewAuthority: "the one before ends at " + timeText(current.NotAfter), Bundle: encode(append([]*x509.Certificate{current}, others...))}
	}

	looks := look(found, wanted, current, others, now)
	plan := Plan{Next: due(current, settings.AuthorityLifetime)}
	if last, done := replaced(looks, current); done && len(others) > 0 {
		if end := last.Add(settings.Overlap); now.Before(end) {
			plan.lookAt(end, now)
		} else {
			others = nil
		}
	}
	plan.Bundle = encode(append([]*x509.Certificate{current}, others...))
	plan.BundleStored = bytes.Equal(found.Authority.Bundle, plan.Bundle)
	for _, name := range slices.Sorted(maps.Keys(found.Bundles)) {
		if slices.ContainsFunc(found.Bundles[name], func(bundle []byte) bool { return !bytes.Equal(bundle, plan.Bundle) }) {
			plan.Objects = append(plan.Objects, name)
		}
	}
	settled := pki.Made(current).Add(settings.Overlap)
	mayReplace := !now.Before(settled) && spread(found, current)
	for _, l := range looks {
		// Of a former authority: it is replaced as soon as all trust the current one, and in time in any case.
		former := l.broken == "" && l.signer != current
		if former {
			l.due = l.leaf.NotAfter.Add(-settings.Overlap)
		}
		reason := l.broken
		switch {
		case reason != "":
		case former && mayReplace:
			reason = "there is a new authority"
		case !now.Before(l.due):
			reason = "the one before ends at " + timeText(l.leaf.NotAfter)
		}
		if reason != "" {
			plan.Issue = append(plan.Issue, Issue{l.wanted, reason})
			continue
		}
		if !bytes.Equal(found.Certificates[l.wanted.Name].Bundle, plan.Bundle) {
			plan.Rebundle = append(plan.Rebundle, l.wanted.Name)
		}
		plan.lookAt(l.due, now)
		if former {
			plan.lookAt(settled, now)
		}
	}
	return plan
}

// lookAt has Next be no later than at, a time to come.
func (p *Plan) lookAt(at, now time.Time) {
	if at.After(now) && at.Before(p.Next) {
		p.Next = at
	}
}

// certificate is what is known of one that is wanted.
type certificate struct {
	wanted Wanted
	broken string // why it serves no client; empty: it does
	leaf   *x509.Certificate
	signer *x509.Certificate
	due    time.Time // when it must be made again
}

func look(found Found, wanted []Wanted, current *x509.Certificate, others []*x509.Certificate, now time.Time) []certificate {
	all := make([]certificate, 0, len(wanted))
	for _, w := range wanted {
		stored, c := found.Certificates[w.Name], certificate{wanted: w}
		leaf, err := pki.Inspect(stored.Pair, w.Request, now)
		switch {
		case len(stored.Certificate)+len(stored.Key) == 0:
			c.broken = "it is missing"
		case err != nil:
			c.broken = err.Error()
		default:
			c.leaf, c.due = leaf, due(leaf, w.Request.Lifetime)
			for _, authority := range append([]*x509.Certificate{current}, others...) {
				if c.signer == nil && leaf.CheckSignatureFrom(authority) == nil {
					c.signer = authority
				}
			}
			if c.signer == nil {
				c.broken = "it was signed by an authority that is not trusted"
			}
		}
		all = append(all, c)
	}
	return all
}

// replaced reports whether every certificate is one of the current authority, and when the last was made.
func replaced(all []certificate, current *x509.Certificate) (last time.Time, done bool) {
	for _, c := range all {
		if c.broken != "" || c.signer != current {
			return last, false
		}
		if made := pki.Made(c.leaf); made.After(last) {
			last = made
		}
	}
	return last, true
}

// spread reports whether an authority is in every bundle that there is.
func spread(found Found, authority *x509.Certificate) bool {
	has := func(bundle []byte) bool { return slices.ContainsFunc(pki.Authorities(bundle), authority.Equal) }
	for _, bundles := range found.Bundles {
		for _, bundle := range bundles {
			if !has(bundle) {
				return false
			}
		}
	}
	for _, stored := range found.Certificates {
		if len(stored.Certificate) > 0 && !has(stored.Bundle) {
			return false
		}
	}
	return true
}

// trusted returns the authorities beside the current one that a certificate may still be served of: those that are stored, and where the
// Secret was lost or damaged, so that the current one is missing there, those that objects name.
func trusted(found Found, current *x509.Certificate, now time.Time) []*x509.Certificate {
	stored := pki.Authorities(found.Authority.Bundle)
	all := stored
	if current == nil || !slices.ContainsFunc(stored, current.Equal) {
		adopted := 0
		for _, name := range slices.Sorted(maps.Keys(found.Bundles)) {
			for _, authority := range pki.Authorities(bytes.Join(found.Bundles[name], []byte("\n"))) {
				if !slices.ContainsFunc(all, authority.Equal) && adopted+len(authority.Raw) <= maxAdopted {
					adopted += len(authority.Raw)
					all = append(all, authority)
				}
			}
		}
	}
	var others []*x509.Certificate
	for _, authority := range all {
		if !authority.Equal(current) && !now.After(authority.NotAfter) && !slices.ContainsFunc(others, authority.Equal) {
			others = append(others, authority)
		}
	}
	return others
}

// due is when a certificate must be made again: two thirds into its life, or into the one that it would have now.
func due(c *x509.Certificate, lifetime time.Duration) time.Time {
	made := pki.Made(c)
	return made.Add(min(c.NotAfter.Sub(made), lifetime) * 2 / 3)
}

func encode(authorities []*x509.Certificate) []byte {
	var text []byte
	for _, authority := range authorities {
		text = append(text, pki.Encode(authority.Raw)...)
	}
	return text
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
