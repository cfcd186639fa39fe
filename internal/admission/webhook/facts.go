package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/target"
)

// facts finds out what must be known of a pod.
type facts struct {
	accounts   ServiceAccounts
	identities Identities
	classes    RuntimeClasses
	rights     *authority.Live
	adapters   func(string) target.Adapter
}

// of decides on a pod, with what is known now. ephemeral is that of pods.Request. An error is a fact that could not be read.
func (f *facts) of(ctx context.Context, namespace string, pod *corev1.Pod, ephemeral []string) (pods.Result, error) {
	r := pods.Request{Namespace: namespace, Pod: pod, Ephemeral: ephemeral, Adapters: f.adapters}
	if name := pod.Spec.ServiceAccountName; name != "" {
		denial, err := f.account(ctx, name, &r)
		if err != nil {
			return pods.Result{}, err
		}
		if denial != nil {
			return pods.Result{Denial: denial}, nil
		}
	}
	if len(r.Account.Identities) > 0 && pods.NeedsRuntimeClass(pod) {
		class, err := f.classes.Get(ctx, *pod.Spec.RuntimeClassName)
		switch {
		case apierrors.IsNotFound(err): // the API server refuses such a pod itself
		case err != nil:
			return pods.Result{}, fmt.Errorf("read RuntimeClass %s: %w", *pod.Spec.RuntimeClassName, err)
		case class.Scheduling != nil:
			r.RuntimeClassNodes = class.Scheduling.NodeSelector
		}
	}
	return pods.Decide(r), nil
}

func (f *facts) account(ctx context.Context, name string, r *pods.Request) (*pods.Denial, error) {
	r.Account.Name = name
	account, err := f.accounts.Get(ctx, r.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read service account %s/%s: %w", r.Namespace, name, err)
	}
	r.Account.Exists = true
	names, denial := pods.Names(account)
	if denial != nil && r.Ephemeral == nil {
		return denial, nil
	}
	for _, identity := range names {
		known := pods.Identity{Name: identity}
		// For a pod that runs, only the identities that it has are read.
		if r.Ephemeral == nil || pods.Carries(r.Pod, name, identity) {
			if known, err = f.identity(ctx, r.Namespace, name, identity); err != nil {
				return nil, err
			}
		}
		r.Account.Identities = append(r.Account.Identities, known)
	}
	return nil, nil
}

func (f *facts) identity(ctx context.Context, namespace, account, name string) (pods.Identity, error) {
	known := pods.Identity{Name: name}
	wi, err := f.identities.Get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return known, nil
	case apierrors.IsForbidden(err):
		return known, fmt.Errorf("credence-webhook may not read workload identities of namespace %s: a cluster admin binds ClusterRole credence:identity-reader there to its user: %w", namespace, err)
	case err != nil:
		return known, fmt.Errorf("read workload identity %s/%s: %w", namespace, name, err)
	}
	known.Exists, known.Deleting, known.Type = true, wi.DeletionTimestamp != nil, wi.Spec.TargetSystem.Type
	if wi.Spec.TargetSystem.ProviderConfig != nil {
		known.ProviderConfig = wi.Spec.TargetSystem.ProviderConfig.Raw
	}
	answer, err := f.rights.Ask(ctx, authority.Use(authority.ServiceAccount(namespace, account, ""), authority.WorkloadIdentities, namespace, name))
	known.Allowed, known.Detail = answer.Allowed, answer.Detail
	return known, err
}
