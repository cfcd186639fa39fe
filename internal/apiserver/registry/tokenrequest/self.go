package tokenrequest

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/authority"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SelfREST serves the subresource workloadidentities/selftoken: tokens for the pod whose own service-account token the request came with.
// RBAC lets all service accounts create it, so the result depends only on the caller's token, a review of its rights, and its pod.
type SelfREST struct {
	*REST
	accounts ContextKind
	pods     corev1client.PodsGetter
	inFlight *inFlight
	// issued is given the uid of an identity, and the expiry of each token that a pod gets.
	issued func(identity types.UID, expiry time.Time)
}

var (
	_ rest.NamedCreater                   = &SelfREST{}
	_ rest.GroupVersionKindProvider       = &SelfREST{}
	_ rest.SubresourceObjectMetaPreserver = &SelfREST{}
)

// NewSelfREST returns the endpoint for the accounts and pods of a cluster; it issues as tokens does, and calls issued for each token.
func NewSelfREST(tokens *REST, accounts ContextKind, pods corev1client.PodsGetter, issued func(identity types.UID, expiry time.Time)) *SelfREST {
	inFlight := newInFlight(maxInFlight, "requests of pods of the namespace %s for tokens of their own")
	return &SelfREST{REST: tokens, accounts: accounts, pods: pods, inFlight: inFlight, issued: issued}
}

// Create checks the request and issues the token, or with dryRun only checks it.
func (r *SelfREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.answer(r.create(ctx, name, obj, admit, options))
}

// create reads the identity, and calls admission, only after it has found that the caller has a right to the token: every pod of the
// cluster may send requests.
func (r *SelfREST) create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (*v1alpha1.TokenRequest, error) {
	tr, err := requestFor(ctx, name, obj)
	if err != nil {
		return nil, err
	}
	caller, err := r.caller(ctx, tr)
	if err != nil {
		return nil, err
	}
	done, err := r.inFlight.begin(caller.Namespace)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.validateSelf(tr, caller); err != nil {
		return nil, err
	}
	// This comes before anything is read: reviews are remembered, so callers without the right cost the cluster almost nothing.
	if err := r.checkUse(ctx, caller.user(), authority.Object{Kind: authority.WorkloadIdentities, Namespace: tr.Namespace, Name: tr.Name}); err != nil {
		return nil, err
	}
	account, err := r.account(ctx, tr, caller)
	if err != nil {
		return nil, err
	}
	if err := r.checkPod(ctx, tr, caller); err != nil {
		return nil, err
	}
	// Admission, the answer and the audit event have the context, as if it had been requested.
	tr.Spec.ContextObject = caller.Context(account.UID)
	if err := admitted(ctx, tr, admit); err != nil {
		return nil, err
	}
	wi, err := r.Identities.Identity(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := r.checkIdentity(ctx, tr, wi, nil, nil); err != nil {
		return nil, err
	}
	if account.Context.Username, err = r.accounts.Username(ctx, caller.Namespace, caller.Name); err != nil {
		return nil, err
	}
	account.Context.Pod = caller.claim()
	// The pod may use the identity, so it may see its target system.
	tr.Status.TargetSystem = &wi.Spec.TargetSystem
	if tr, err = r.issue(ctx, tr, wi, nil, account.Context, isDryRun(options)); err != nil {
		return nil, err
	}
	if !isDryRun(options) {
		r.issued(wi.UID, tr.Status.ExpirationTimestamp.Time)
	}
	return tr, nil
}

// validateSelf returns all faults of the request as one 422.
func (r *SelfREST) validateSelf(tr *v1alpha1.TokenRequest, caller podCaller) error {
	spec := field.NewPath("spec")
	errs := r.validateDuration(tr.Spec.Duration, spec.Child("duration"))
	if d := tr.Spec.Duration; d != nil && d.Duration > r.Lifetimes.Default {
		errs = append(errs, field.Invalid(spec.Child("duration"), d.Duration.String(), fmt.Sprintf(
			"must not be longer than %s, the default: a pod renews its tokens for as long as it runs", r.Lifetimes.Default)))
	}
	if object := tr.Spec.ContextObject; object != nil && *object != *caller.Context(object.UID) {
		errs = append(errs, field.Forbidden(spec.Child("contextObject"), fmt.Sprintf(
			"must be left out, or be the caller: the v1 ServiceAccount %s; for tokens of others there is workloadidentities/token", caller.NamespacedName)))
	}
	if _, ok := tr.Annotations[v1alpha1.AnnotationBinding]; ok {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationBinding),
			"must be left out: a pod gets tokens of identities that its service account may use, and not by CredentialsBindings"))
	}
	if len(errs) > 0 {
		return invalid(tr.Name, errs)
	}
	return nil
}

// account reads the caller's service account: it exists, and is the one that the caller's token and the request mean.
func (r *SelfREST) account(ctx context.Context, tr *v1alpha1.TokenRequest, caller podCaller) (ContextFacts, error) {
	facts, err := r.accounts.Find(ctx, caller.Namespace, caller.Name)
	switch {
	case apierrors.IsNotFound(err):
		return ContextFacts{}, refusedSelf(tr.Name, "service account %s of the caller's token does not exist any more", caller.NamespacedName)
	case err != nil:
		return ContextFacts{}, unavailable.New("service account %s of the caller can't be read: %v", caller.NamespacedName, err)
	// API servers before Kubernetes 1.33 do not pass uids on. Each compares the uid of the token itself.
	case caller.UID != "" && caller.UID != facts.UID:
		return ContextFacts{}, refusedSelf(tr.Name, "service account %s has uid %q, the caller's token is of one with uid %q: it was deleted and created again", caller.NamespacedName, facts.UID, caller.UID)
	case tr.Spec.ContextObject != nil && tr.Spec.ContextObject.UID != facts.UID:
		return ContextFacts{}, otherUID(r.accounts.Resource.GroupResource(), tr.Spec.ContextObject, facts.UID)
	}
	return facts, nil
}

func (r *SelfREST) checkPod(ctx context.Context, tr *v1alpha1.TokenRequest, caller podCaller) error {
	pod, err := r.pods.Pods(caller.Namespace).Get(ctx, caller.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return refusedSelf(tr.Name, "%s", caller.Gone())
	case err != nil:
		return unavailable.New("pod %s/%s of the caller's token can't be read: %v", caller.Namespace, caller.Pod.Name, err)
	}
	if fault := caller.Fault(pod, r.Clock.Now()); fault != "" {
		return refusedSelf(tr.Name, "%s", fault)
	}
	return nil
}

func refusedSelf(name, format string, args ...any) error {
	return apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), name, fmt.Errorf(format, args...))
}
