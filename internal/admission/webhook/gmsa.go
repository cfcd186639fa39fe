package webhook

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/liveread"
)

// GMSA has the settings of group managed service accounts. Its zero value is fit for use.
type GMSA struct {
	// Annotations has the annotations of the time before there were fields read too (the gate WindowsGMSAAnnotations).
	Annotations bool
	// RequireUser also checks the author of a request: users need the right that the service account needs, at workloads,
	// and at pods, which only Controllers may make for others.
	RequireUser bool
	Controllers []string
	// Enforcement is what becomes of refusals.
	Enforcement Enforcement
	// Hostname returns a new host name of at most gmsa.MaxHostname characters; nil: pods keep what they have.
	Hostname func() string
}

// managedAccounts decides about group managed service accounts, with what is known now.
type managedAccounts struct {
	GMSA
	workloads Workloads
	specs     CredentialSpecs
	reads     liveread.Reads[string, gmsa.Spec]
	rights    *authority.Live
}

func newManagedAccounts(needs Needs, rights *authority.Live) *managedAccounts {
	return &managedAccounts{GMSA: needs.GMSA, specs: needs.CredentialSpecs, workloads: needs.Workloads, rights: rights}
}

// read is the current object of a name.
func (a *managedAccounts) read(ctx context.Context, name string) (gmsa.Spec, error) {
	return a.reads.Get(ctx, name, func(ctx context.Context) (gmsa.Spec, error) { return a.specs.Read(ctx, name) })
}

// known finds out what is known of each name: from memory, and from the API where nothing is remembered, so that an object can
// be named in the moment in which it was created.
func (a *managedAccounts) known(ctx context.Context, names []string) (map[string]gmsa.Spec, error) {
	specs := map[string]gmsa.Spec{}
	for _, name := range names {
		spec, known := a.specs.Known(name)
		if !known {
			var err error
			if spec, err = a.read(ctx, name); err != nil {
				return nil, err
			}
		}
		specs[name] = spec
	}
	return specs, nil
}

// afresh replaces the specs of references that do not match them, and may be used, by what they are now: a change that the
// watch has not shown yet must not have a pod refused.
func (a *managedAccounts) afresh(ctx context.Context, q gmsa.Request) error {
	read := map[string]bool{}
	for _, r := range q.References {
		if r.Contents == "" || read[r.Name] || !q.Uses[r.Name].Allowed || gmsa.Same(r.Contents, q.Specs[r.Name].Contents) == nil {
			continue
		}
		spec, err := a.read(ctx, r.Name)
		if err != nil {
			return err
		}
		q.Specs[r.Name], read[r.Name] = spec, true
	}
	return nil
}

// reviewsAtOnce bounds how many reviews of one pod go on together.
const reviewsAtOnce = 8

// usable reviews which GMSACredentialSpecs a user may use in a namespace.
func (a *managedAccounts) usable(ctx context.Context, user authority.Subject, namespace string, names []string) (map[string]authority.Answer, error) {
	var mu sync.Mutex
	answers := map[string]authority.Answer{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, name := range names {
		group.Go(func() error {
			answer, err := a.rights.Ask(ctx, authority.Use(user, authority.GMSACredentialSpecs, namespace, name))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
			return nil
		})
	}
	return answers, group.Wait()
}

// userAnswers reports whether the author of a request is checked.
func (a *managedAccounts) userAnswers(user string) bool {
	return a.RequireUser && !slices.Contains(a.Controllers, user)
}
