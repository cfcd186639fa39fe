package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
)

// gmsaPodsAtATime are how many gMSA pods are created at a time.
const gmsaPodsAtATime = 32

// measureGMSAPods creates gMSA pods, through kube-apiserver and whatever decides about them: ours, a webhook that does nothing in
// its place, or no webhook. First dry runs, which are not stored; then many at the same moment, which are.
func measureGMSAPods(ctx context.Context, s settings, p plane, t *table) error {
	w, err := newGMSAWorld(ctx, p)
	if err != nil {
		return err
	}
	defer w.remove()
	kube, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	// Pods take a good part of a round each, so rounds are longer, and there are fewer.
	s.round, s.rounds = 2*s.round, max(2, s.rounds/2)
	results, err := rounds(ctx, s, gmsaPodsAtATime, []subject{
		{name: byNone, once: w.gmsaDryRun(byNone), pids: []int{kube}},
		{name: byNoop, once: w.gmsaDryRun(byNoop), pids: []int{kube}, aside: []int{w.noop}},
		{name: byOurWebhooks, once: w.gmsaDryRun(byOurWebhooks), pids: []int{kube}, aside: []int{w.ours}},
		{name: byOurs, once: w.gmsaDryRun(byOurs), pids: []int{kube}, aside: []int{w.ours}},
	})
	if err != nil {
		return err
	}
	gmsaPodRows(t, results)
	return w.burst(ctx, t)
}

// gmsaPodRows shows what is added to the creation of a pod that no webhook or policy decides about. The webhook that does nothing is beside our
// webhooks and the policy, as they are installed, and beside our webhooks alone, as it has no policy either.
func gmsaPodRows(t *table, results map[string]result) {
	bare, noop := results[byNone], results[byNoop]
	time := func(r result) float64 { return 1e6/r.perSecond - 1e6/bare.perSecond }
	cpu := func(r result) float64 { return micro(r.cpu + r.aside - bare.cpu) }
	what := fmt.Sprintf("gMSA pods, %d at a time: ", gmsaPodsAtATime)
	const peer = "webhook that does nothing"
	for _, with := range []struct{ by, what string }{{byOurs, "webhooks and policy"}, {byOurWebhooks, "webhooks alone"}} {
		ours := results[with.by]
		t.add(row{what: what + "time added per pod, " + with.what, unit: "µs", ours: time(ours), peer: peer, theirs: time(noop), target: atMost(1.5)})
		t.add(row{what: what + "CPU added per pod, " + with.what, unit: "µs", ours: cpu(ours), peer: peer, theirs: cpu(noop), target: atMost(1.5)})
		t.add(row{what: what + "CPU of the webhook's process in that", unit: "µs", ours: micro(ours.aside), peer: peer, theirs: micro(noop.aside)})
	}
	ours := results[byOurs]
	t.add(row{what: what + "pods per second", ours: ours.perSecond, peer: peer, theirs: noop.perSecond})
	t.add(row{what: what + "pods per second", ours: ours.perSecond, peer: "no webhook", theirs: bare.perSecond})
	t.add(row{what: what + "p99 of creating a pod", unit: "ms", ours: ours.p99.Seconds() * 1e3, peer: peer, theirs: noop.p99.Seconds() * 1e3})
	t.add(row{what: what + "p99 of creating a pod", unit: "ms", ours: ours.p99.Seconds() * 1e3, peer: "no webhook", theirs: bare.p99.Seconds() * 1e3})
}

// burst creates pods at once, of a service account that was never asked about, after as many that the webhook that does nothing
// admits.
func (w *gmsaWorld) burst(ctx context.Context, t *table) error {
	noop, err := w.burstBy(ctx, byNoop)
	if err != nil {
		return err
	}
	if _, err := w.asked(ctx); err != nil {
		return err
	}
	begin := time.Now()
	ours, err := w.burstBy(ctx, byOurs)
	if err != nil {
		return err
	}
	windows := int(time.Since(begin)/reviewWindow) + 1
	counted, err := w.asked(ctx)
	if err != nil {
		return err
	}
	what, peer := fmt.Sprintf("%d gMSA pods at once: ", podsAtOnce), "webhook that does nothing"
	t.add(row{what: what + "created", ours: float64(podsAtOnce - ours.failed), peer: "all", theirs: podsAtOnce, target: atLeast(1)})
	t.add(row{what: what + "until all are created", unit: "s", ours: ours.created.Seconds(), peer: peer, theirs: noop.created.Seconds()})
	t.add(row{what: what + "p99", unit: "s", ours: ours.p99.Seconds(), peer: peer, theirs: noop.p99.Seconds()})
	t.add(row{what: what + "slowest", unit: "s", ours: ours.slowest.Seconds(), peer: peer, theirs: noop.slowest.Seconds()})
	t.add(row{what: what + "access reviews", ours: float64(counted.reviews), peer: "one per window of 10 s", theirs: float64(windows), target: atMost(1)})
	t.add(row{what: what + "other API calls", ours: float64(counted.others), peer: "one per pod", theirs: podsAtOnce, target: atMost(0)})
	return nil
}

// burstBy creates them and removes them again.
func (w *gmsaWorld) burstBy(ctx context.Context, by string) (bursted, error) {
	result, err := w.createAtOnce(ctx, w.gmsaPod(by, gmsaAccount(burstAccount)))
	if err != nil {
		return bursted{}, err
	}
	var pods corev1.PodList
	if err := w.objects.List(ctx, &pods, ctrl.InNamespace(w.namespace)); err != nil {
		return bursted{}, err
	}
	if want := podsAtOnce - result.failed; len(pods.Items) != want {
		return bursted{}, fmt.Errorf("there are %d gMSA pods, want %d", len(pods.Items), want)
	}
	for i := range pods.Items {
		if options := pods.Items[i].Spec.SecurityContext.WindowsOptions; (options.GMSACredentialSpec != nil) != (by == byOurs) {
			return bursted{}, fmt.Errorf("gMSA pod %s, created by %s, must have contents if that is %s", pods.Items[i].Name, by, byOurs)
		}
	}
	return result, w.objects.DeleteAllOf(ctx, &corev1.Pod{}, ctrl.InNamespace(w.namespace), ctrl.GracePeriodSeconds(0))
}
