package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// fillIdentities are how many identities the Secrets carry tokens of.
	fillIdentities = 100
	// fillWorkers are how many Secrets are renewed at once: the default of --concurrency.
	fillWorkers = 8
	// createWorkers make what is measured afterwards.
	createWorkers = 16
	// fillPatience is how long filling may take.
	fillPatience = 10 * time.Minute
)

// measureSecrets measures the agent with many Secrets: how fast they are first filled, beside plain Secrets of the same size
// that the same client patches; its memory, beside a process that only caches them; and what it uses while none is due.
func measureSecrets(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled})
	if err != nil {
		return err
	}
	defer remove()
	restore, err := w.retire(ctx)
	if err != nil {
		return err
	}
	defer restore()
	if err := w.prepareFill(ctx); err != nil {
		return err
	}
	empty, sample, err := w.measureEmpty(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: %d token Secrets and as many plain ones are made\n", s.secrets)
	if err := many(ctx, s.secrets, createWorkers, func(ctx context.Context, i int) error { return w.objects.Create(ctx, w.tokenSecret(i)) }); err != nil {
		return fmt.Errorf("create token Secrets: %w", err)
	}
	plain := make([]*corev1.Secret, s.secrets)
	if err := many(ctx, s.secrets, createWorkers, func(ctx context.Context, i int) error {
		plain[i] = w.plainSecret(i)
		return w.objects.Create(ctx, plain[i])
	}); err != nil {
		return fmt.Errorf("create plain Secrets: %w", err)
	}
	a, caching, err := w.measureFill(ctx, plain, sample, t)
	if err != nil {
		return err
	}
	defer a.stop()
	defer caching.stop()
	return w.measureFull(ctx, s, a, caching, empty, t)
}

func (w *world) prepareFill(ctx context.Context) error {
	if err := w.leases(ctx); err != nil {
		return err
	}
	if err := w.agentMayMint(ctx); err != nil {
		return err
	}
	return many(ctx, fillIdentities, fillWorkers, func(ctx context.Context, i int) error { return w.identity(ctx, identityOf(i)) })
}

func identityOf(i int) string { return fmt.Sprintf("bench-%02d", i%fillIdentities) }

// tokenSecret is a Secret as a user makes it, without a token.
func (w *world) tokenSecret(i int) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: fmt.Sprintf("token-%05d", i), Labels: map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor},
		Annotations: map[string]string{v1alpha1.AnnotationName: identityOf(i), v1alpha1.AnnotationNamespace: w.namespace},
	}}
}

// plainSecret has labels and annotations like it, but no component watches it.
func (w *world) plainSecret(i int) *corev1.Secret {
	secret := w.tokenSecret(i)
	secret.Name = fmt.Sprintf("plain-%05d", i)
	secret.Labels = map[string]string{"bench.example.com/purpose": "a-label-that-no-component-ever-selects"}
	return secret
}

// clocks are the processes that a filled Secret costs CPU, by name.
func (w *world) clocks() (map[string]int, error) {
	pids := map[string]int{}
	for _, component := range []string{"devcluster", "apiserver", "webhook"} {
		pid, err := w.plane.pid(component)
		if err != nil {
			return nil, err
		}
		pids[component] = pid
	}
	return pids, nil
}

// measureFill has an agent fill all Secrets, between the two halves of plain Secrets, and leaves it running, and beside it a
// process that has only cached what the agent has.
func (w *world) measureFill(ctx context.Context, plain []*corev1.Secret, sample *corev1.Secret, t *table) (a agent, caching peer, err error) {
	pids, err := w.clocks()
	if err != nil {
		return agent{}, peer{}, err
	}
	half := len(plain) / 2
	patch := func(plain []*corev1.Secret) (span, error) {
		pids["client"] = os.Getpid()
		defer delete(pids, "client") // it only waits besides
		s, err := watched(pids, func() (int, error) { return len(plain), w.patchPlain(ctx, plain, sample) })
		if err != nil {
			return span{}, fmt.Errorf("patch plain Secrets: %w", err)
		}
		return s, nil
	}
	first, err := patch(plain[:half])
	if err != nil {
		return agent{}, peer{}, err
	}
	if caching, err = startPeer(ctx, cachingCommand, w.plane.Kubeconfig); err != nil {
		return agent{}, peer{}, err
	}
	if a, err = w.startAgent(ctx); err != nil {
		caching.stop()
		return agent{}, peer{}, err
	}
	defer func() {
		if err != nil {
			a.stop()
			caching.stop()
		}
	}()
	fill, failed, err := a.fill(ctx, len(plain), pids)
	if err != nil {
		return agent{}, peer{}, err
	}
	second, err := patch(plain[half:])
	if err != nil {
		return agent{}, peer{}, err
	}
	fillRows(t, len(plain), fill, first.plus(second), failed)
	return a, caching, nil
}

// fill watches from the first Secret that the agent has filled to the last, and returns how often it could not.
func (a agent) fill(ctx context.Context, count int, pids map[string]int) (fill span, failed int, err error) {
	if err := a.wrote(ctx, 1, time.Minute); err != nil {
		return span{}, 0, err
	}
	pids = maps.Clone(pids)
	pids["agent"] = a.pid
	fill, err = watched(pids, func() (int, error) {
		before, _, err := a.renewals(ctx)
		if err != nil {
			return 0, err
		}
		return count - before, a.wrote(ctx, count, fillPatience)
	})
	if err != nil {
		return span{}, 0, err
	}
	_, failed, err = a.renewals(ctx)
	return fill, failed, err
}

func fillRows(t *table, count int, fill, plain span, failed int) {
	what, peer := fmt.Sprintf("first fill of %d Secrets: ", count), "plain Secrets, patched"
	t.add(row{what: what + "Secrets per second", ours: fill.perSecond(), peer: peer, theirs: plain.perSecond(), target: atLeast(0.3)})
	t.add(row{what: what + "filled at the first attempt", ours: float64(count - failed), peer: "all", theirs: float64(count), target: atLeast(1)})
	t.add(row{what: what + "CPU per Secret of all processes", unit: "µs", ours: fill.cpuPerAll(), peer: peer, theirs: plain.cpuPerAll()})
	for _, process := range []struct{ name, what string }{
		{"devcluster", "kube-apiserver and etcd"}, {"apiserver", "the aggregated server"}, {"webhook", "the webhook"}, {"agent", "the agent"},
	} {
		t.add(row{what: what + "CPU per Secret of " + process.what, unit: "µs", ours: fill.cpuPer(process.name), peer: peer + ": kube-apiserver", theirs: plain.cpuPer("devcluster")})
	}
}

// patchPlain writes what a filled Secret holds into plain ones, with the agent's kind of patch.
func (w *world) patchPlain(ctx context.Context, plain []*corev1.Secret, sample *corev1.Secret) error {
	return many(ctx, len(plain), fillWorkers, func(ctx context.Context, i int) error {
		filled := plain[i].DeepCopy()
		filled.Data, filled.Annotations = sample.Data, sample.Annotations
		return w.objects.Patch(ctx, filled, ctrl.MergeFromWithOptions(plain[i], ctrl.MergeFromWithOptimisticLock{}))
	})
}
