package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// settle is how long a process is left alone before its memory is read.
	settle = 10 * time.Second
	// idleWindow is how long it is watched doing nothing.
	idleWindow = 30 * time.Second
	// fillPatience is how long filling may take.
	fillPatience = 5 * time.Minute
)

// measureSecrets measures the agent with many Secrets: how fast they are first filled, beside plain Secrets of the same size
// that the same client patches; its memory, beside a process that only caches them; and what it uses while none is due.
func measureSecrets(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, nil)
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
	a, err := w.measureFill(ctx, plain, sample, t)
	if err != nil {
		return err
	}
	defer a.stop()
	return w.measureFull(ctx, s, a, empty, t)
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

// plainSecret has labels and annotations like it, but nobody is concerned with it.
func (w *world) plainSecret(i int) *corev1.Secret {
	secret := w.tokenSecret(i)
	secret.Name = fmt.Sprintf("plain-%05d", i)
	secret.Labels = map[string]string{"bench.example.com/purpose": "nothing-that-anybody-is-concerned-with"}
	return secret
}

// held is the memory of the agent and of a process that only caches, in megabytes.
type held struct{ agent, caching float64 }

// measureEmpty reads both with one Secret, which is filled so that all has run once; that Secret is a sample of those to come.
func (w *world) measureEmpty(ctx context.Context) (held, *corev1.Secret, error) {
	one := w.tokenSecret(99999)
	if err := w.objects.Create(ctx, one); err != nil {
		return held{}, nil, err
	}
	memory, a, err := w.together(ctx, 1)
	if err != nil {
		return held{}, nil, err
	}
	a.stop()
	var filled corev1.Secret
	return memory, &filled, w.get(ctx, one.Namespace, one.Name, &filled)
}

// together starts an agent and a process that only caches, with so many Secrets to fill or filled already, and reads the memory
// of both. The agent runs on.
func (w *world) together(ctx context.Context, fill int) (held, agent, error) {
	caching, err := startPeer(ctx, cachingCommand, w.plane.Kubeconfig)
	if err != nil {
		return held{}, agent{}, err
	}
	defer caching.stop()
	a, err := w.startAgent(ctx)
	if err != nil {
		return held{}, agent{}, err
	}
	read := func() (memory held, err error) {
		if err := a.wrote(ctx, fill, time.Minute); err != nil {
			return held{}, err
		}
		if err := pause(ctx, settle); err != nil {
			return held{}, err
		}
		if memory.agent, err = residentMB(a.pid); err == nil {
			memory.caching, err = residentMB(caching.pid)
		}
		return memory, err
	}
	memory, err := read()
	if err != nil {
		a.stop()
	}
	return memory, a, err
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

// span is how much was done, in what time, with how much CPU of which process.
type span struct {
	done int
	took time.Duration
	cpu  map[string]time.Duration
}

func (s span) perSecond() float64 { return float64(s.done) / s.took.Seconds() }

func (s span) cpuPer(process string) float64 { return micro(s.cpu[process]) / float64(s.done) }

// watched measures what a function does, which says how much that was.
func watched(pids map[string]int, do func() (int, error)) (span, error) {
	before := map[string]time.Duration{}
	for name, pid := range pids {
		used, err := cpuOf(pid)
		if err != nil {
			return span{}, err
		}
		before[name] = used
	}
	begin := time.Now()
	done, err := do()
	if err != nil {
		return span{}, err
	}
	s := span{done: done, took: time.Since(begin), cpu: map[string]time.Duration{}}
	for name, pid := range pids {
		used, err := cpuOf(pid)
		if err != nil {
			return span{}, err
		}
		s.cpu[name] = used - before[name]
	}
	return s, nil
}

// plus adds up what was done at two times.
func (s span) plus(other span) span {
	cpu := maps.Clone(s.cpu)
	for name, used := range other.cpu {
		cpu[name] += used
	}
	return span{s.done + other.done, s.took + other.took, cpu}
}

// measureFill has an agent fill all Secrets, between the two halves of plain Secrets, and leaves it running.
func (w *world) measureFill(ctx context.Context, plain []*corev1.Secret, sample *corev1.Secret, t *table) (a agent, err error) {
	pids, err := w.clocks()
	if err != nil {
		return agent{}, err
	}
	half := len(plain) / 2
	first, err := watched(pids, func() (int, error) { return half, w.patchPlain(ctx, plain[:half], sample) })
	if err != nil {
		return agent{}, fmt.Errorf("patch plain Secrets: %w", err)
	}
	if a, err = w.startAgent(ctx); err != nil {
		return agent{}, err
	}
	defer func() {
		if err != nil {
			a.stop()
		}
	}()
	if err := a.wrote(ctx, 1, time.Minute); err != nil {
		return agent{}, err
	}
	pids["agent"] = a.pid
	fill, err := watched(pids, func() (int, error) {
		before, _, err := a.renewals(ctx)
		if err != nil {
			return 0, err
		}
		return len(plain) - before, a.wrote(ctx, len(plain), fillPatience)
	})
	if err != nil {
		return agent{}, err
	}
	second, err := watched(pids, func() (int, error) { return len(plain) - half, w.patchPlain(ctx, plain[half:], sample) })
	if err != nil {
		return agent{}, fmt.Errorf("patch plain Secrets: %w", err)
	}
	_, failed, err := a.renewals(ctx)
	if err != nil {
		return agent{}, err
	}
	fillRows(t, len(plain), fill, first.plus(second), failed)
	return a, nil
}

func fillRows(t *table, count int, fill, plain span, failed int) {
	what, peer := fmt.Sprintf("first fill of %d Secrets: ", count), "plain Secrets, patched"
	t.add(row{what: what + "Secrets per second", ours: fill.perSecond(), peer: peer, theirs: plain.perSecond(), target: atLeast(0.3)})
	t.add(row{what: what + "filled at the first attempt", ours: float64(count - failed), peer: "all", theirs: float64(count), target: atLeast(1)})
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

func (w *world) get(ctx context.Context, namespace, name string, object ctrl.Object) error {
	return w.objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
}

// measureFull reads memory and idle CPU with all Secrets filled.
func (w *world) measureFull(ctx context.Context, s settings, a agent, empty held, t *table) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	idle, err := watched(map[string]int{"agent": a.pid}, func() (int, error) { return 1, pause(ctx, idleWindow) })
	if err != nil {
		return err
	}
	after, err := residentMB(a.pid)
	if err != nil {
		return err
	}
	a.stop()
	full, again, err := w.together(ctx, 0)
	if err != nil {
		return err
	}
	defer again.stop()
	if written, _, err := again.renewals(ctx); err != nil || written > 0 {
		return errors.Join(fmt.Errorf("an agent that was started again has renewed %d tokens, none was due", written), err)
	}
	per := func(megabytes float64) float64 { return megabytes * 1024 / float64(s.secrets) }
	cached := per(full.caching - empty.caching)
	what := fmt.Sprintf("agent with %d Secrets: ", s.secrets)
	t.add(row{what: what + "CPU seconds per minute while none is due", unit: "s", ours: idle.cpu["agent"].Seconds() * 60 / idle.took.Seconds(), peer: "a CPU", theirs: 60, target: atMost(0.01)})
	t.add(row{what: what + "memory per Secret, started with them", unit: "KB", ours: per(full.agent - empty.agent), peer: "only cached", theirs: cached})
	t.add(row{what: what + "memory per Secret, after filling them", unit: "KB", ours: per(after - empty.agent), peer: "only cached", theirs: cached})
	t.add(row{what: what + "memory per Secret beyond the cached object", unit: "KB", ours: per(full.agent-empty.agent) - cached, peer: "the limit", theirs: 6, target: atMost(1)})
	t.add(row{what: "memory of the agent with one Secret", unit: "MB", ours: empty.agent, peer: "only cached", theirs: empty.caching})
	return nil
}
