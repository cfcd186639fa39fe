package drift

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/credence-id/credence/internal/profiles"
)

const (
	// interval is the time between two looks.
	interval = 30 * time.Second
	// statusManager is the field manager of what is written into the status of profiles.
	statusManager = "credence-profiles-drift"
)

// Controller looks at the pods of all profiles again and again.
type Controller struct {
	// Clusters are that of the pods, and that of their identities.
	Clusters cluster.Both
	// Limiter bounds the requests to the cluster of the pods. Its client waits for it; requests of other clients do so here.
	Limiter  flowcontrol.RateLimiter
	Events   record.EventRecorder
	Recorder *Recorder
	Clock    clock.Clock
	Log      *slog.Logger

	client   client.Client
	memories map[types.UID]*memory
	// tried is the namespace in which a pod was to be evicted last. The next look begins after it, so that the bound of a look is for all in turn.
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
		case <-c.Clock.After(interval):
		}
	}
}

// look decides about all pods of profiles, writes what it found, and evicts. A namespace that cannot be read does not keep others from it.
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
	left, stopped, complete := maxAtOnce, 0, true
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
		tries := 0
		for _, profile := range longestWaiting(byNamespace[namespace], c.memories) {
			step, gone, err := c.report(ctx, profile, sights[profile.Name], left > 0 && tries < maxTries)
			if step.evict != nil {
				tries, c.tried = tries+1, namespace
			}
			if gone {
				left--
			}
			if step.reason == ReasonStopped {
				stopped++
			}
			if err != nil {
				failures = append(failures, err)
			}
		}
	}
	c.Recorder.look(states, stopped, complete, began, c.Clock.Now())
	return errors.Join(failures...)
}

// after turns sorted names round, so that those after one come first.
func after(names []string, last string) []string {
	i, found := slices.BinarySearch(names, last)
	if found {
		i++
	}
	return slices.Concat(names[i:], names[:i])
}

// longestWaiting sorts profiles of a namespace by when a pod of each was to be evicted last.
func longestWaiting(profiles []*accounts.ServiceAccountProfile, memories map[types.UID]*memory) []*accounts.ServiceAccountProfile {
	slices.SortStableFunc(profiles, func(a, b *accounts.ServiceAccountProfile) int {
		return memories[a.UID].evicted.Compare(memories[b.UID].evicted)
	})
	return profiles
}

// report writes what was found about a profile, and tries to evict a pod of it if that may be done now. gone reports whether one was evicted.
func (c *Controller) report(ctx context.Context, profile *accounts.ServiceAccountProfile, found *sight, may bool) (decided step, gone bool, err error) {
	found.sort()
	now, remembered := c.Clock.Now(), c.memories[profile.UID]
	remembered.notice(now, profile.Generation, found.drifted)
	workloads := map[string]workload{}
	if profile.Spec.OnChange == accounts.OnChangeEvict {
		if workloads, err = c.workloads(ctx, profile.Namespace, found.drifted); err != nil {
			return step{}, false, err
		}
	}
	decided = next(now, profile.Spec.OnChange, remembered, found.drifted, workloads)
	if err := c.write(ctx, profile, found, decided); err != nil || decided.evict == nil || !may {
		decided.evict = nil
		return decided, false, err
	}
	remembered.evicted = now
	result, err := c.evict(ctx, profile, decided.evict)
	if result == held {
		remembered.hold(now, decided.evict)
	}
	return decided, result == evicted, err
}

// workloads reads the controllers of pods.
func (c *Controller) workloads(ctx context.Context, namespace string, drifted []pod) (map[string]workload, error) {
	found := map[string]workload{}
	for _, p := range drifted {
		if p.controller == nil {
			continue
		}
		if _, read := found[string(p.controller.UID)]; read {
			continue
		}
		w := workload{OwnerReference: *p.controller}
		if api, resource, ok := placeOf(p.controller); ok {
			var object struct {
				metav1.ObjectMeta `json:"metadata"`
				Spec              struct {
					Replicas *int `json:"replicas"`
				} `json:"spec"`
				Status struct {
					ReadyReplicas          int `json:"readyReplicas"`
					DesiredNumberScheduled int `json:"desiredNumberScheduled"`
					NumberReady            int `json:"numberReady"`
				} `json:"status"`
			}
			err := c.Clusters.Workload.Get(ctx, &object, cluster.Place{API: api, Namespace: namespace, Resource: resource, Name: p.controller.Name})
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("read %s %s/%s: %w", p.controller.Kind, namespace, p.controller.Name, err)
			}
			w.known = err == nil && object.UID == p.controller.UID
			w.desired, w.ready = object.Status.DesiredNumberScheduled, object.Status.NumberReady
			if object.Spec.Replicas != nil {
				w.desired, w.ready = *object.Spec.Replicas, object.Status.ReadyReplicas
			}
		}
		found[string(p.controller.UID)] = w
	}
	return found, nil
}

// write makes the status of a profile what was found, unless it is so already, and writes an Event where the condition has another reason.
func (c *Controller) write(ctx context.Context, profile *accounts.ServiceAccountProfile, found *sight, decided step) error {
	pods, before := found.pods(), meta.FindStatusCondition(profile.Status.Conditions, accounts.ConditionInSpec)
	conditions := slices.Clone(profile.Status.Conditions)
	meta.SetStatusCondition(&conditions, found.inSpec(profile, decided))
	after := *meta.FindStatusCondition(conditions, accounts.ConditionInSpec)
	if before != nil && equality.Semantic.DeepEqual(*before, after) && equality.Semantic.DeepEqual(profile.Status.Pods, pods) {
		return nil
	}
	if err := c.Limiter.Wait(ctx); err != nil {
		return err
	}
	if err := profiles.ApplyStatus(ctx, c.client, profile, statusManager, accounts.ServiceAccountProfileStatus{Pods: pods, Conditions: []metav1.Condition{after}}); err != nil {
		return err
	}
	good := after.Status == metav1.ConditionTrue
	if before == nil && good || before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	kind := corev1.EventTypeWarning
	if good {
		kind = corev1.EventTypeNormal
	}
	c.Events.Event(profile, kind, after.Reason, after.Message)
	return c.Limiter.Wait(ctx)
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
