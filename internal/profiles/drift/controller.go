package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/drift/survey"
	"github.com/credence-id/credence/internal/wording"
)

// statusManager is the field manager of what is written into the status of profiles.
const statusManager = "credence-profiles-drift"

// Controller looks at the pods of all profiles again and again.
type Controller struct {
	// Clusters are that of the pods, and that of their identities.
	Clusters cluster.Both
	// Limiter bounds the requests to the cluster of the pods. Its client waits for it; requests of other clients do so here.
	Limiter flowcontrol.RateLimiter
	Periods
	Events   record.EventRecorder
	Recorder *Recorder
	Clock    clock.Clock
	Log      *slog.Logger

	client   client.Client
	memories map[types.UID]*memory
	// tried is the last namespace in which a look acted. The next look begins after it, so that all namespaces get their turn.
	tried string
}

// Register implements profiles.Controller.
func (c *Controller) Register(m manager.Manager) error {
	c.client = m.GetClient()
	return m.Add(c)
}

// Start looks until ctx is done. It is called once this replica leads.
func (c *Controller) Start(ctx context.Context) error {
	c.memories = map[types.UID]*memory{}
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.Log.ErrorContext(ctx, "the pods of profiles can't be looked at", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.Clock.After(c.Interval):
		}
	}
}

// look decides about all pods of profiles, evicts or restarts, and then writes the statuses. A namespace that cannot be read does not hold
// up others.
func (c *Controller) look(ctx context.Context) error {
	began := c.Clock.Now()
	list := &accounts.ServiceAccountProfileList{}
	if err := c.client.List(ctx, list); err != nil {
		return fmt.Errorf("list profiles: %w", err)
	}
	byNamespace := map[string][]*accounts.ServiceAccountProfile{}
	remembered := map[types.UID]*memory{}
	for i := range list.Items {
		profile := &list.Items[i]
		byNamespace[profile.Namespace] = append(byNamespace[profile.Namespace], profile)
		if remembered[profile.UID] = c.memories[profile.UID]; remembered[profile.UID] == nil {
			remembered[profile.UID] = &memory{}
		}
	}
	c.memories = remembered
	states := map[string]int{}
	var failures []error
	var reports []*report
	left, stopped, complete := maxAtOnce, map[string]int{}, true
	for _, namespace := range after(slices.Sorted(maps.Keys(byNamespace)), c.tried) {
		sights := map[string]*sight{}
		for _, profile := range byNamespace[namespace] {
			sights[profile.Name] = &sight{}
		}
		err := survey.Each(ctx, c.Clusters, namespace, func(object *corev1.Pod, finding drift.Finding) {
			if sight := sights[object.Spec.ServiceAccountName]; sight != nil {
				states[finding.State]++
				sight.see(object, finding)
			}
		})
		if err != nil {
			complete = false
			failures = append(failures, fmt.Errorf("namespace %s: %w", namespace, err))
			continue
		}
		tries, around := 0, &neighborhood{api: c.Clusters.Workload, namespace: namespace}
		var unwritten []*report
		for _, profile := range longestWaiting(byNamespace[namespace], c.memories) {
			found := sights[profile.Name]
			decided, err := c.plan(ctx, profile, found, around, left > 0 && tries < maxTries)
			stopped[decided.reason]++
			if decided.evict != nil || decided.begin != nil {
				tries, c.tried = tries+1, namespace
			}
			if err == nil && decided.urgent(profile) {
				var acted bool
				if acted, err = c.act(ctx, profile, found, decided); acted {
					left--
				}
			} else if r := reportOf(profile, found, decided); r.news() {
				unwritten = append(unwritten, r)
			}
			if err != nil {
				failures = append(failures, err)
			}
		}
		reports = append(reports, c.queue(unwritten)...)
	}
	c.Recorder.look(states, stopped, complete, began, c.Clock.Now())
	return errors.Join(append(failures, c.writeInTurn(ctx, reports))...)
}

// after turns sorted names round, so that those after one come first.
func after(names []string, last string) []string {
	i, found := slices.BinarySearch(names, last)
	if found {
		i++
	}
	return slices.Concat(names[i:], names[:i])
}

// longestWaiting sorts profiles of a namespace by when a pod of each was to be evicted last, or a workload restarted.
func longestWaiting(profiles []*accounts.ServiceAccountProfile, memories map[types.UID]*memory) []*accounts.ServiceAccountProfile {
	slices.SortStableFunc(profiles, func(a, b *accounts.ServiceAccountProfile) int {
		return memories[a.UID].acted.Compare(memories[b.UID].acted)
	})
	return profiles
}

// plan decides the next step for the drifted pods of a profile.
func (c *Controller) plan(ctx context.Context, profile *accounts.ServiceAccountProfile, found *sight, around *neighborhood, may bool) (step, error) {
	found.sort()
	now := moment{c.Clock.Now(), c.Pace}
	c.memories[profile.UID].notice(now.Time, profile.Generation, found.drifted)
	decided, err := c.decide(ctx, now, profile, found.drifted, around)
	if err != nil { // what was found is shown all the same
		return step{reason: ReasonOutOfSpec, restart: profile.Status.Restart, message: "what to do about them could not be decided: " + wording.AbbreviateTo(err.Error(), maxMessageOfPod)}, err
	}
	if decided.held {
		c.Recorder.restarted.WithLabelValues(held).Inc()
	}
	if !may {
		decided = decided.none(profile)
	}
	return decided, nil
}

// act writes the status of a profile, and then evicts a pod of it, or restarts a workload, if that was decided. acted reports whether it did.
func (c *Controller) act(ctx context.Context, profile *accounts.ServiceAccountProfile, found *sight, decided step) (acted bool, err error) {
	now, remembered := c.Clock.Now(), c.memories[profile.UID]
	if err := c.write(ctx, reportOf(profile, found, decided)); err != nil {
		if decided.begin != nil && apierrors.IsConflict(err) {
			err = nil // decided on again at the next look
		}
		return false, err
	}
	result := ""
	switch {
	case decided.evict != nil:
		remembered.acted = now
		if result, err = c.evict(ctx, profile, decided.evict); result == held {
			remembered.hold(now, decided.evict)
		}
	case decided.begin != nil:
		remembered.acted = now
		result, err = c.restart(ctx, profile, found, decided)
	}
	return result == evicted || result == restarted, err
}

// decide reads what is needed to decide about the drifted pods of a profile, and does.
func (c *Controller) decide(ctx context.Context, now moment, profile *accounts.ServiceAccountProfile, drifted []pod, around *neighborhood) (step, error) {
	remembered, workloads := c.memories[profile.UID], map[string]workload{}
	switch profile.Spec.OnChange {
	case accounts.OnChangeRestart:
		return c.decideRestart(ctx, now, profile, drifted, around)
	case accounts.OnChangeEvict:
		var err error
		if workloads, err = owners(ctx, around, drifted); err != nil {
			return step{}, err
		}
	}
	return next(now, profile.Spec.OnChange, remembered, drifted, workloads), nil
}

// owners reads the controllers of pods.
func owners(ctx context.Context, around *neighborhood, drifted []pod) (map[string]workload, error) {
	found := map[string]workload{}
	for _, p := range drifted {
		if p.controller == nil {
			continue
		}
		if _, read := found[string(p.controller.UID)]; read {
			continue
		}
		w := workload{OwnerReference: *p.controller}
		object, err := around.controller(ctx, p.controller)
		if err != nil {
			return nil, err
		}
		if w.known = object != nil && p.controller.Kind != "Deployment"; w.known {
			w.desired, w.ready = object.desired(), object.ready()
		}
		found[string(p.controller.UID)] = w
	}
	return found, nil
}

// evict evicts a pod, unless a disruption budget holds it, and returns the result; empty: the pod is gone, or another one.
func (c *Controller) evict(ctx context.Context, profile *accounts.ServiceAccountProfile, p *pod) (result string, err error) {
	uid := types.UID(p.uid)
	eviction := map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": p.Name, "namespace": profile.Namespace},
		"deleteOptions": metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	}
	err = c.Clusters.Workload.Create(ctx, cluster.Place{Namespace: profile.Namespace, Resource: "pods", Name: p.Name, Within: "eviction"}, eviction, nil)
	switch {
	case err == nil:
		result = evicted
		c.Events.Eventf(profile, corev1.EventTypeNormal, "PodEvicted", "pod %s was evicted: %s", p.Name, p.difference())
		err = c.Limiter.Wait(ctx)
	case apierrors.IsTooManyRequests(err):
		result, err = held, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", nil
	default:
		result, err = failed, fmt.Errorf("evict pod %s/%s: %w", profile.Namespace, p.Name, err)
	}
	c.Recorder.evicted.WithLabelValues(result).Inc()
	return result, err
}

// difference words why a pod has drifted.
func (p *pod) difference() string {
	return drift.Finding{State: drift.Stale, Field: p.Field, Has: p.Has, Wants: p.Wants}.String()
}
