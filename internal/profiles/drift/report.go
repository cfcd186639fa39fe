package drift

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profiles"
)

// report is the status that a profile is to have.
type report struct {
	profile *accounts.ServiceAccountProfile
	status  accounts.ServiceAccountProfileStatus // the fields of statusManager
	begins  bool                                 // a workload is to be restarted
	turn    int                                  // its place among the reports of its namespace
}

func reportOf(profile *accounts.ServiceAccountProfile, found *sight, decided step) *report {
	conditions := slices.Clone(profile.Status.Conditions)
	meta.SetStatusCondition(&conditions, found.inSpec(profile, decided))
	inSpec := *meta.FindStatusCondition(conditions, accounts.ConditionInSpec)
	return &report{
		profile: profile, begins: decided.begin != nil,
		status: accounts.ServiceAccountProfileStatus{Pods: found.pods(), Restart: decided.restart, Conditions: []metav1.Condition{inSpec}},
	}
}

// news reports whether the status differs from the stored one.
func (r *report) news() bool {
	before := meta.FindStatusCondition(r.profile.Status.Conditions, accounts.ConditionInSpec)
	return before == nil || !equality.Semantic.DeepEqual(*before, r.status.Conditions[0]) || !equality.Semantic.DeepEqual(r.profile.Status.Pods, r.status.Pods) ||
		!equality.Semantic.DeepEqual(r.profile.Status.Restart, r.status.Restart)
}

// queue orders the reports of a namespace: profiles that have waited longest come first.
func (c *Controller) queue(reports []*report) []*report {
	slices.SortStableFunc(reports, c.longer)
	for i, r := range reports {
		r.turn = i
	}
	return reports
}

// longer compares when the statuses of two profiles were written last.
func (c *Controller) longer(a, b *report) int {
	return c.memories[a.profile.UID].written.Compare(c.memories[b.profile.UID].written)
}

// writeInTurn writes one report of each namespace, then the next of each, for no longer than the time between two looks. The next look
// makes the remaining ones again: many reports of one namespace do not hold up others.
func (c *Controller) writeInTurn(ctx context.Context, reports []*report) error {
	slices.SortStableFunc(reports, func(a, b *report) int { return cmp.Or(cmp.Compare(a.turn, b.turn), c.longer(a, b)) })
	began := c.Clock.Now()
	var failures []error
	for _, r := range reports {
		if ctx.Err() != nil || c.Clock.Since(began) >= c.Interval {
			break
		}
		if err := c.write(ctx, r); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// write writes the status of a profile if it has changed, and an Event if the condition has another reason. Before a workload is restarted,
// the profile must be as it was decided on: no other process has written since.
func (c *Controller) write(ctx context.Context, r *report) error {
	apply := profiles.ApplyStatus
	if r.begins {
		apply = profiles.ApplyStatusUnchanged
	} else if !r.news() {
		return nil
	}
	if err := c.Limiter.Wait(ctx); err != nil {
		return err
	}
	profile := r.profile
	c.memories[profile.UID].written = c.Clock.Now()
	if err := apply(ctx, c.client, profile, statusManager, r.status); err != nil {
		return err
	}
	before, after := meta.FindStatusCondition(profile.Status.Conditions, accounts.ConditionInSpec).DeepCopy(), r.status.Conditions[0]
	profile.Status.Pods, profile.Status.Restart = r.status.Pods, r.status.Restart
	meta.SetStatusCondition(&profile.Status.Conditions, after)
	if !profiles.Report(c.Events, profile, before, after, after.Status == metav1.ConditionTrue) {
		return nil
	}
	return c.Limiter.Wait(ctx)
}
