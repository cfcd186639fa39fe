package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// settle is how long a process is left alone before its memory is read.
	settle = 10 * time.Second
	// idleWindow is how long it is watched doing nothing: longer than the two minutes after which Go collects garbage unasked.
	idleWindow = 130 * time.Second
)

// held is the memory of the agent and of a process that only caches, in megabytes, without that of the program's file.
type held struct{ agent, caching float64 }

// measureEmpty reads both with one Secret, which is filled so that all has run once; that Secret is a sample of those to come.
func (w *world) measureEmpty(ctx context.Context) (held, *corev1.Secret, error) {
	one := w.tokenSecret(99999)
	if err := w.objects.Create(ctx, one); err != nil {
		return held{}, nil, err
	}
	memory, a, err := w.together(ctx, 1, 1)
	if err != nil {
		return held{}, nil, err
	}
	a.stop()
	var filled corev1.Secret
	return memory, &filled, w.get(ctx, one.Namespace, one.Name, &filled)
}

// together starts an agent, which fills some Secrets and keeps some, and a process that only caches them, and reads the memory of
// both. The agent runs on.
func (w *world) together(ctx context.Context, fill, keep int) (held, agent, error) {
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
		if err := a.keeps(ctx, keep); err != nil {
			return held{}, err
		}
		if err := pause(ctx, settle); err != nil {
			return held{}, err
		}
		return heldBy(a, caching)
	}
	memory, err := read()
	if err != nil {
		a.stop()
	}
	return memory, a, err
}

func heldBy(a agent, caching peer) (memory held, err error) {
	if memory.agent, err = anonymousMB(a.pid); err == nil {
		memory.caching, err = anonymousMB(caching.pid)
	}
	return memory, err
}

// measureFull reads memory and idle CPU with all Secrets filled, and memory again of processes that find them so.
func (w *world) measureFull(ctx context.Context, s settings, a agent, caching peer, empty held, t *table) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	idle, err := watched(map[string]int{"agent": a.pid}, func() (int, error) { return 1, pause(ctx, idleWindow) })
	if err != nil {
		return err
	}
	after, err := heldBy(a, caching)
	if err != nil {
		return err
	}
	a.stop()
	caching.stop()
	found, again, err := w.together(ctx, 0, s.secrets)
	if err != nil {
		return err
	}
	defer again.stop()
	if written, _, err := again.renewals(ctx); err != nil || written > 0 {
		return errors.Join(fmt.Errorf("an agent that was started again has renewed %d tokens, none was due", written), err)
	}
	what := fmt.Sprintf("agent with %d Secrets: ", s.secrets)
	t.add(row{what: what + "CPU seconds per minute while none is due", unit: "s", ours: idle.cpu["agent"].Seconds() * 60 / idle.took.Seconds(), peer: "a CPU", theirs: 60, target: atMost(0.01)})
	memoryPer(t, what+"memory per Secret, filled", s.secrets, empty, after)
	memoryPer(t, what+"memory per Secret, found filled", s.secrets, empty, found)
	t.add(row{what: "memory of the agent with one Secret, without the program", unit: "MB", ours: empty.agent, peer: "only cached", theirs: empty.caching})
	return nil
}

// beyondLimitKB is what a Secret may cost the agent beyond the cached object.
const beyondLimitKB = 6

func memoryPer(t *table, what string, secrets int, empty, full held) {
	per := func(megabytes float64) float64 { return megabytes * 1024 / float64(secrets) }
	ours, cached := per(full.agent-empty.agent), per(full.caching-empty.caching)
	t.add(row{what: what, unit: "KB", ours: ours, peer: "only cached", theirs: cached})
	t.add(row{what: what + ", beyond the cached object", unit: "KB", ours: ours - cached, peer: "the limit", theirs: beyondLimitKB, target: atMost(1)})
}
