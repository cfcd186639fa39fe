// Package facts finds out what must be known of a pod before it is decided on, for the webhook as for all that explain or repeat its
// decisions. In go a pod and the ways to read a fact; out comes the request that package pods decides on. It remembers nothing, and
// assumes nothing: a source that may not read a fact chooses what is assumed.
package facts

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/profile"
)

// Sources read facts. An object that does not exist is the error NotFound of the API; any other error ends the gathering.
type Sources struct {
	ServiceAccount func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	Identity       func(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
	// Profile is the profile of the service account of the same name, and Template a SecurityContextTemplate. Without Profile no account has one.
	Profile  func(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error)
	Template func(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error)
	Right    func(ctx context.Context, question authority.Question) (authority.Answer, error)
	// Delivery is how tokens come to the pods of a namespace; for new pods with identities. Without it, the request has that already.
	Delivery func(ctx context.Context, namespace string) (string, error)
	// Nodes returns the labels that a RuntimeClass demands of nodes.
	Nodes func(ctx context.Context, runtimeClass string) (map[string]string, error)
}

// Gather completes a request of a pod. A denial is of the list of identities of its service account, so that nothing else was read.
func (s Sources) Gather(ctx context.Context, r *pods.Request) (*pods.Denial, error) {
	if name := r.Pod.Spec.ServiceAccountName; name != "" {
		denial, err := s.account(ctx, name, r)
		if denial != nil || err != nil {
			return denial, err
		}
	}
	if !NeedsNodes(*r) {
		return nil, nil
	}
	nodes, err := s.Nodes(ctx, *r.Pod.Spec.RuntimeClassName)
	if apierrors.IsNotFound(err) {
		return nil, nil // the API server refuses such a pod itself
	}
	r.RuntimeClassNodes = nodes
	return nil, err
}

// NeedsNodes reports whether a decision needs the RuntimeClass of the pod, once all else is known.
func NeedsNodes(r pods.Request) bool {
	return (len(r.Account.Identities) > 0 || r.Profile.HasContexts()) && pods.NeedsRuntimeClass(r.Pod)
}

func (s Sources) account(ctx context.Context, name string, r *pods.Request) (*pods.Denial, error) {
	r.Account.Name = name
	var others errgroup.Group // at the same time, as each read takes as long as all else
	others.Go(func() (err error) {
		r.Profile, err = s.profile(ctx, r.Namespace, name)
		return err
	})
	account, err := s.ServiceAccount(ctx, r.Namespace, name)
	if err := others.Wait(); err != nil {
		return nil, err
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.Account.Exists = true
	if r.NoIdentities {
		return nil, nil
	}
	names, denial := pods.NamesOf(account, r.Profile)
	if denial != nil && r.Ephemeral == nil {
		return denial, nil
	}
	var delivery errgroup.Group
	if s.Delivery != nil && r.Ephemeral == nil && len(names) > 0 {
		delivery.Go(func() (err error) {
			r.Delivery, err = s.Delivery(ctx, r.Namespace)
			return err
		})
	}
	err = s.identities(ctx, name, names, r)
	return nil, cmp.Or(delivery.Wait(), err)
}

// identities completes a request by the identities of its service account.
func (s Sources) identities(ctx context.Context, account string, names []string, r *pods.Request) error {
	for _, identity := range names {
		known := pods.Identity{Name: identity}
		// For a pod that runs, only the identities that it has are read.
		if r.Ephemeral == nil || pods.Carries(r.Pod, account, identity) {
			var err error
			if known, err = s.identity(ctx, r.Namespace, account, identity); err != nil {
				return err
			}
		}
		r.Account.Identities = append(r.Account.Identities, known)
	}
	return nil
}

// profile is the profile of a service account, or the zero value.
func (s Sources) profile(ctx context.Context, namespace, name string) (profile.Profile, error) {
	if s.Profile == nil {
		return profile.Profile{}, nil
	}
	object, err := s.Profile(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return profile.Profile{}, nil
	}
	if err != nil {
		return profile.Profile{}, err
	}
	template := profile.TemplateOf(object)
	if template == "" {
		return profile.Resolve(object, nil), nil
	}
	contexts, err := s.Template(ctx, template)
	if apierrors.IsNotFound(err) {
		return profile.Resolve(object, nil), nil
	}
	if err != nil {
		return profile.Profile{}, err
	}
	return profile.Resolve(object, contexts), nil
}

func (s Sources) identity(ctx context.Context, namespace, account, name string) (pods.Identity, error) {
	known := pods.Identity{Name: name}
	wi, err := s.Identity(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	known.Exists, known.Deleting, known.Type = true, wi.DeletionTimestamp != nil, wi.Spec.TargetSystem.Type
	if wi.Spec.TargetSystem.ProviderConfig != nil {
		known.ProviderConfig = wi.Spec.TargetSystem.ProviderConfig.Raw
	}
	answer, err := s.Right(ctx, authority.Use(authority.ServiceAccount(namespace, account, ""), authority.WorkloadIdentities, namespace, name))
	known.Allowed, known.Detail = answer.Allowed, answer.Detail
	return known, err
}
