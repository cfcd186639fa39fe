package drift

import (
	"context"

	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/authority"
)

// Remember returns sources that read each fact once, errors included: for one look at many pods, by one goroutine.
func Remember(s Sources) Sources {
	rights := map[string]answered[authority.Answer]{}
	return Sources{Labels: once(s.Labels), Spec: once(s.Spec), Sources: facts.Sources{
		ServiceAccount: onceEach(s.ServiceAccount), Identity: onceEach(s.Identity), Profile: onceEach(s.Profile), Template: once(s.Template),
		Right: func(ctx context.Context, q authority.Question) (authority.Answer, error) {
			known, asked := rights[q.String()]
			if !asked {
				known.value, known.err = s.Right(ctx, q)
				rights[q.String()] = known
			}
			return known.value, known.err
		},
		Nodes: once(s.Nodes),
	}}
}

type answered[V any] struct {
	value V
	err   error
}

// onceEach is once for objects of a namespace.
func onceEach[V any](read func(ctx context.Context, namespace, name string) (V, error)) func(ctx context.Context, namespace, name string) (V, error) {
	object := once(func(ctx context.Context, key [2]string) (V, error) { return read(ctx, key[0], key[1]) })
	return func(ctx context.Context, namespace, name string) (V, error) {
		return object(ctx, [2]string{namespace, name})
	}
}

func once[K comparable, V any](read func(context.Context, K) (V, error)) func(context.Context, K) (V, error) {
	known := map[K]answered[V]{}
	return func(ctx context.Context, key K) (V, error) {
		answer, asked := known[key]
		if !asked {
			answer.value, answer.err = read(ctx, key)
			known[key] = answer
		}
		return answer.value, answer.err
	}
}
