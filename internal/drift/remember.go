package drift

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/authority"
)

// Remember returns sources that read each fact once, errors included: for one look at many pods, by one goroutine.
func Remember(s Sources) Sources {
	type object struct{ namespace, name string }
	serviceAccounts := once(func(ctx context.Context, o object) (*corev1.ServiceAccount, error) {
		return s.ServiceAccount(ctx, o.namespace, o.name)
	})
	identities := once(func(ctx context.Context, o object) (*v1alpha1.WorkloadIdentity, error) {
		return s.Identity(ctx, o.namespace, o.name)
	})
	profiles := once(func(ctx context.Context, o object) (*accounts.ServiceAccountProfile, error) {
		return s.Profile(ctx, o.namespace, o.name)
	})
	rights := map[string]answered[authority.Answer]{}
	return Sources{Labels: once(s.Labels), Spec: once(s.Spec), Sources: facts.Sources{
		ServiceAccount: func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
			return serviceAccounts(ctx, object{namespace, name})
		},
		Identity: func(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
			return identities(ctx, object{namespace, name})
		},
		Profile: func(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error) {
			return profiles(ctx, object{namespace, name})
		},
		Template: once(s.Template),
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
