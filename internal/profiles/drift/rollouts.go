package drift

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// restartedAt is the annotation by which kubectl rollout restart changes a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

const (
	appsVersion = "apps/v1"
	maxRefusal  = 512
)

// decideRestart reads the workloads of drifted pods, and decides.
func (c *Controller) decideRestart(ctx context.Context, now moment, profile *accounts.ServiceAccountProfile, drifted []pod, n *neighborhood) (step, error) {
	remembered, last := c.memories[profile.UID], profile.Status.Restart
	waits := step{restart: last, reason: ReasonRestarts, message: "their workloads are restarted, one at a time"}
	switch {
	case len(drifted) == 0 && last == nil:
		return step{reason: ReasonOutOfSpec}, nil
	case !now.paces(1, remembered.since):
		return waits, nil
	}
	found, alone, err := rollouts(ctx, n, profile.Name, drifted, last)
	if err != nil {
		return step{}, err
	}
	budgets, err := n.disruptions(ctx)
	if err != nil {
		return step{}, err
	}
	return restart(now, remembered, last, found, alone, budgets), nil
}

// rollouts reads the workloads of drifted pods of an account, and the one that was restarted last. alone is the number of pods without a workload that
// can be restarted.
func rollouts(ctx context.Context, n *neighborhood, account string, drifted []pod, last *accounts.ProfileRestart) (found []*rollout, alone int, err error) {
	known := map[types.UID]*rollout{}
	rolloutOf := func(kind string, o *object) *rollout {
		if known[o.UID] == nil {
			known[o.UID] = rolloutOf(kind, o)
			found = append(found, known[o.UID])
		}
		return known[o.UID]
	}
	for i := range drifted {
		workload, kind, err := n.workload(ctx, account, &drifted[i])
		switch {
		case err != nil:
			return nil, 0, err
		case workload == nil:
			alone++
		default:
			rolloutOf(kind, workload).add(&drifted[i])
		}
	}
	if last != nil {
		workload, err := n.controller(ctx, &metav1.OwnerReference{APIVersion: appsVersion, Kind: last.Kind, UID: last.UID})
		if err != nil {
			return nil, 0, err
		}
		if workload != nil && workload.account() == account {
			rolloutOf(last.Kind, workload)
		}
	}
	return found, alone, nil
}

// restart changes the template of a workload, and nothing if it is no longer the one that was decided on. The record is then marked as begun.
func (c *Controller) restart(ctx context.Context, profile *accounts.ServiceAccountProfile, found *sight, decided step) (result string, err error) {
	r, remembered := decided.begin, c.memories[profile.UID]
	workload := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: r.name}}
	workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(appsVersion, r.kind))
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		r.uid, r.version, restartedAt, decided.restart.At))
	if err := c.Limiter.Wait(ctx); err != nil {
		return "", err
	}
	err = c.client.Patch(ctx, workload, patch, client.FieldOwner(statusManager))
	remembered.refusal = ""
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		remembered.refusal = fmt.Sprintf("no more workloads are restarted: %s can't be changed: %s", r, wording.AbbreviateTo(err.Error(), maxRefusal))
		fallthrough
	case err != nil:
		c.Recorder.restarted.WithLabelValues(failed).Inc()
		return failed, fmt.Errorf("restart %s %s/%s: %w", r.kind, profile.Namespace, r.name, err)
	}
	c.Recorder.restarted.WithLabelValues(restarted).Inc()
	why := r.drifted[0].difference()
	c.Events.Eventf(profile, corev1.EventTypeNormal, "WorkloadRestarted", "%s was restarted: %s", r, why)
	c.Events.Eventf(&corev1.ObjectReference{APIVersion: appsVersion, Kind: r.kind, Namespace: profile.Namespace, Name: r.name, UID: r.uid},
		corev1.EventTypeNormal, "WorkloadRestarted", "pods no longer match ServiceAccountProfile %s: %s", profile.Name, why)
	decided.begin, decided.restart = nil, decided.restart.DeepCopy()
	decided.restart.Begun = true
	return restarted, c.write(ctx, reportOf(profile, found, decided))
}
