package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	leaseName      = "credence-agent"
	leaseNamespace = "credence-system"
	// leaseSeconds is longer than any measurement: should this program be killed, the plane's agent goes on after it.
	leaseSeconds = 1800
)

// metricsEvery is how often the agent's progress is read from its metrics: often enough for a filling that takes a minute, and so
// seldom that answering costs the agent next to nothing.
const metricsEvery = 250 * time.Millisecond

// retire takes the Lease from the plane's agent, which ends and is started again as one that waits, and waits until it has ended.
// The function gives it back.
func (w *world) retire(ctx context.Context) (func(), error) {
	pid, err := w.plane.pid("agent")
	if err != nil {
		return nil, err
	}
	var lease coordinationv1.Lease
	lease.Namespace, lease.Name = leaseNamespace, leaseName
	give := func() { _ = w.objects.Delete(context.WithoutCancel(ctx), &lease) }
	take := func(ctx context.Context) (bool, error) {
		var found coordinationv1.Lease
		if err := w.get(ctx, leaseNamespace, leaseName, &found); err != nil {
			return false, err
		}
		now := metav1.NowMicro()
		found.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("bench"), LeaseDurationSeconds: ptr.To[int32](leaseSeconds), AcquireTime: &now, RenewTime: &now,
			LeaseTransitions: found.Spec.LeaseTransitions,
		}
		err := w.objects.Update(ctx, &found)
		return err == nil, err
	}
	if err := until(ctx, "the Lease of the agent is taken", 30*time.Second, 100*time.Millisecond, take); err != nil {
		return nil, err
	}
	err = until(ctx, "the plane's agent has ended and is started again", time.Minute, 500*time.Millisecond, func(context.Context) (bool, error) {
		var err error
		if w.plane, err = readPlane(w.plane.dir); err != nil {
			return false, err
		}
		again, err := w.plane.pid("agent")
		return again != pid, err
	})
	if err != nil {
		give()
		return nil, err
	}
	return give, nil
}

// leases lets the agent's user elect itself in the namespace.
func (w *world) leases(ctx context.Context) error {
	role := object("", "", "agent-leads", nil)
	role["rules"] = []any{map[string]any{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": []string{"create", "get", "update"}}}
	if _, err := w.create(ctx, fmt.Sprintf(rbacPath, w.namespace)+"roles", role); err != nil {
		return err
	}
	return w.bind(ctx, "agent-leads", "Role", "agent-leads", map[string]any{"kind": "User", "name": agentUser})
}

// agent is a copy of the plane's agent that leads by a Lease of its own.
type agent struct {
	copied
	world *world
	url   string
}

func (w *world) startAgent(ctx context.Context) (agent, error) {
	// One that was killed has not given its Lease up, and would be waited for.
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: leaseName}}
	if err := w.objects.Delete(ctx, &lease); err != nil && !apierrors.IsNotFound(err) {
		return agent{}, err
	}
	port, err := freePorts(1)
	if err != nil {
		return agent{}, err
	}
	c, err := startCopy(ctx, w.plane, "agent", map[string]string{"--health-port": port, "--leader-election-namespace": w.namespace})
	if err != nil {
		return agent{}, err
	}
	a := agent{c, w, "https://127.0.0.1:" + port}
	if err := served(ctx, w.metrics, a.url+"/readyz"); err != nil {
		a.stop()
		return agent{}, fmt.Errorf("wait for a second agent: %w", err)
	}
	return a, nil
}

// renewals returns how many tokens the agent has written, and how often it could not.
func (a agent) renewals(ctx context.Context) (written, failed int, err error) {
	metrics, err := get(ctx, a.world.metrics, a.url+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	return int(sum(metrics, "credence_agent_renewals_total")), int(sum(metrics, "credence_agent_failures_total")), nil
}

// wrote waits until it has written so many.
func (a agent) wrote(ctx context.Context, count int, patience time.Duration) error {
	return until(ctx, fmt.Sprintf("%d Secrets are filled", count), patience, metricsEvery, func(ctx context.Context) (bool, error) {
		written, failed, err := a.renewals(ctx)
		if err == nil && written < count {
			err = fmt.Errorf("%d are filled, with %d failures", written, failed)
		}
		return written >= count, err
	})
}

// keeps waits until it has looked at so many Secrets.
func (a agent) keeps(ctx context.Context, count int) error {
	return until(ctx, fmt.Sprintf("the agent keeps %d Secrets", count), 2*time.Minute, metricsEvery, func(ctx context.Context) (bool, error) {
		metrics, err := get(ctx, a.world.metrics, a.url+"/metrics")
		return sum(metrics, "credence_agent_secrets") >= float64(count), err
	})
}
