package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/target"
)

// podRules decides on pods, with what is known at the time.
type podRules struct {
	sources  facts.Sources
	adapters func(string) target.Adapter
	// noIdentities is that of pods.Request.
	noIdentities bool
	// recent has what was read for new pods, until these are reviewed again.
	recent *recentFacts
}

// of decides on a pod. ephemeral is that of pods.Request. An error is a fact that could not be read.
func (p *podRules) of(ctx context.Context, namespace string, pod *corev1.Pod, ephemeral []string) (pods.Result, error) {
	r, denial, err := p.gather(ctx, namespace, pod, ephemeral)
	if denial != nil || err != nil {
		return pods.Result{Denial: denial}, err
	}
	return pods.Decide(r), nil
}

func (p *podRules) gather(ctx context.Context, namespace string, pod *corev1.Pod, ephemeral []string) (pods.Request, *pods.Denial, error) {
	r := pods.Request{Namespace: namespace, Pod: pod, Ephemeral: ephemeral, NoIdentities: p.noIdentities, Adapters: p.adapters}
	began := p.recent.now()
	denial, err := p.sources.Gather(ctx, &r)
	if denial == nil && err == nil {
		p.recent.remember(r, began)
	}
	return r, denial, err
}

// newSources returns the sources of a webhook, which assume nothing.
func newSources(needs Needs, rights *authority.Live) facts.Sources {
	return facts.Sources{
		Right: rights.Ask,
		ServiceAccount: func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
			account, err := needs.ServiceAccounts.Get(ctx, namespace, name)
			if err != nil {
				return nil, fmt.Errorf("read service account %s/%s: %w", namespace, name, err)
			}
			return account, nil
		},
		Profile: func(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error) {
			profile, err := needs.Profiles.Profile(ctx, namespace, name)
			switch {
			case apierrors.IsForbidden(err):
				return nil, fmt.Errorf("credence-webhook may not read ServiceAccountProfiles: a cluster admin applies the manifests of its version, of which ClusterRole credence:webhook:accounts lets it: %w", err)
			case err != nil:
				return nil, fmt.Errorf("read ServiceAccountProfile %s/%s: %w", namespace, name, err)
			}
			return profile, nil
		},
		Template: func(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error) {
			template, err := needs.Profiles.Template(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("read SecurityContextTemplate %s: %w", name, err)
			}
			return template, nil
		},
		Identity: func(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
			wi, err := needs.Identities.Get(ctx, namespace, name)
			switch {
			case apierrors.IsForbidden(err):
				return nil, fmt.Errorf("credence-webhook may not read workload identities of namespace %s: a cluster admin binds ClusterRole credence:identity-reader there to its user: %w", namespace, err)
			case apierrors.IsUnauthorized(err):
				return nil, errors.New(failures.Unauthorized(namespace, fmt.Errorf("read workload identity %s/%s: %w", namespace, name, err)))
			case err != nil:
				return nil, fmt.Errorf("read workload identity %s/%s: %w", namespace, name, err)
			}
			return wi, nil
		},
		Delivery: func(ctx context.Context, name string) (string, error) {
			namespace, err := needs.Namespaces.Get(ctx, name)
			switch {
			case apierrors.IsForbidden(err):
				return "", fmt.Errorf("credence-webhook may not read namespaces: a cluster admin applies the manifests of its version, of which ClusterRole credence:webhook:accounts lets it: %w", err)
			case err != nil:
				return "", fmt.Errorf("read namespace %s: %w", name, err)
			}
			if chosen, present := namespace.Labels[v1alpha1.LabelNamespaceDelivery]; present {
				return cmp.Or(chosen, `""`), nil
			}
			return needs.Delivery, nil
		},
		Nodes: func(ctx context.Context, runtimeClass string) (map[string]string, error) {
			class, err := needs.RuntimeClasses.Get(ctx, runtimeClass)
			if err != nil {
				return nil, fmt.Errorf("read RuntimeClass %s: %w", runtimeClass, err)
			}
			if class.Scheduling == nil {
				return nil, nil
			}
			return class.Scheduling.NodeSelector, nil
		},
	}
}
