// Package tokenrequest serves workloadidentities/token and workloadidentities/selftoken. In goes a TokenRequest of a caller whom the
// cluster's RBAC lets create it, out comes the same object with a signed token. It stores nothing and never logs a token.
package tokenrequest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/wording"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"
)

// Identities finds the WorkloadIdentity of a name in the namespace of the request; its errors are API errors.
type Identities interface {
	Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error)
}

// Bindings finds out whether a CredentialsBinding refers to an identity; its errors are API errors.
type Bindings interface {
	Refers(ctx context.Context, binding, identity types.NamespacedName) (bool, error)
}

// Tokens checks a request for a token and signs what was checked.
type Tokens interface {
	Prepare(request issuer.Request) (*issuer.Prepared, error)
	Sign(ctx context.Context, prepared *issuer.Prepared) (identity.Token, error)
}

// Clusters finds the workload cluster of a user: nil for a user of none. Its errors are API errors.
type Clusters interface {
	Of(user string) (*clusters.Cluster, error)
}

// Recorder counts what became of requests: one of the outcomes of this package, or a status reason of the API machinery.
type Recorder interface {
	Issued(algorithm identity.Algorithm)
	// Signed is called with the time that the signature of a token took.
	Signed(algorithm identity.Algorithm, took time.Duration)
	Refused(reason string)
}

// Config holds what the endpoint needs; every field is required.
type Config struct {
	Identities Identities
	Bindings   Bindings
	Tokens     Tokens
	Issuer     identity.Issuer
	Lifetimes  identity.Lifetimes
	Authorizer authorizer.UnconditionalAuthorizer
	Clusters   Clusters
	Sightings  *clusters.Sightings
	Contexts   []ContextKind
	Objects    Objects
	Recorder   Recorder
	Clock      clock.PassiveClock
}

// REST serves the subresource workloadidentities/token.
type REST struct {
	Config
}

var (
	_ rest.NamedCreater                   = &REST{}
	_ rest.GroupVersionKindProvider       = &REST{}
	_ rest.SubresourceObjectMetaPreserver = &REST{}
)

// NewREST returns the endpoint.
func NewREST(config Config) *REST { return &REST{Config: config} }

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &Object{} }

// Destroy implements rest.Storage.
func (*REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("TokenRequest")
}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements rest.SubresourceObjectMetaPreserver: a uid in the
// request is a precondition.
func (*REST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create checks the request and issues the token, or with dryRun only checks it.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.answer(r.create(ctx, name, obj, admit, options))
}

func (r *REST) answer(tr *v1alpha1.TokenRequest, err error) (runtime.Object, error) {
	if err != nil {
		r.Recorder.Refused(string(apierrors.ReasonForError(err)))
		return nil, err
	}
	object := objectOf(tr)
	object.answer = true
	return object, nil
}

func (r *REST) create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (*v1alpha1.TokenRequest, error) {
	tr, err := requestFor(ctx, name, obj)
	if err != nil {
		return nil, err
	}
	if err := admitted(ctx, tr, admit); err != nil {
		return nil, err
	}
	kind, err := r.validate(tr)
	if err != nil {
		return nil, err
	}
	// Before the identity is looked up: a cluster learns nothing of namespaces that are not its own.
	cluster, err := r.callersCluster(ctx, kind, tr)
	if err != nil {
		return nil, err
	}
	wi, tokenContext, err := r.resolve(ctx, kind, tr, cluster)
	if err != nil {
		return nil, err
	}
	return r.issue(ctx, tr, wi, cluster, tokenContext, isDryRun(options))
}

// resolve checks identity and context. The agent of a workload cluster does not learn which identities there are that its objects do not use.
func (r *REST) resolve(ctx context.Context, kind *ContextKind, tr *v1alpha1.TokenRequest, cluster *clusters.Cluster) (wi *v1alpha1.WorkloadIdentity, tokenContext *issuer.Context, err error) {
	ofCluster := cluster != nil && kind != nil && kind.objects != nil
	if ofCluster {
		if tokenContext, err = r.resolveObject(ctx, kind, tr, cluster); err != nil {
			return nil, nil, err
		}
	}
	if wi, err = r.Identities.Identity(ctx, tr.Name); err != nil {
		return nil, nil, err
	}
	if err := r.checkIdentity(ctx, tr, wi, kind, cluster); err != nil {
		return nil, nil, err
	}
	if !ofCluster {
		tokenContext, err = r.resolveContext(ctx, kind, tr, wi, cluster)
	}
	return wi, tokenContext, err
}

// requestFor returns the request for the identity that the URL names. It is a copy, and nothing of a client's status survives.
func requestFor(ctx context.Context, name string, obj runtime.Object) (*v1alpha1.TokenRequest, error) {
	object, ok := obj.(*Object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a TokenRequest", obj))
	}
	namespace, ok := request.NamespaceFrom(ctx)
	if !ok || namespace == "" {
		return nil, apierrors.NewBadRequest("a TokenRequest needs a namespace in its URL")
	}
	tr := object.request().DeepCopy()
	tr.Status = v1alpha1.TokenRequestStatus{}
	if err := checkName(tr, name); err != nil {
		return nil, err
	}
	tr.Name, tr.Namespace, tr.ManagedFields = name, namespace, nil
	return tr, nil
}

// admitted runs admission on a copy of the request, as admission could change it.
func admitted(ctx context.Context, tr *v1alpha1.TokenRequest, admit rest.ValidateObjectFunc) error {
	if admit == nil {
		return nil
	}
	return admit(ctx, objectOf(tr.DeepCopy()))
}

func checkName(tr *v1alpha1.TokenRequest, name string) error {
	if tr.Name == "" || tr.Name == name {
		return nil
	}
	if len(tr.Name) > maxFieldLength {
		return invalid(name, field.ErrorList{field.TooLong(field.NewPath("metadata", "name"), "", maxFieldLength)})
	}
	return invalid(tr.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), tr.Name,
		fmt.Sprintf("must be empty or the name of the WorkloadIdentity in the URL, %q", name))})
}

func (r *REST) checkIdentity(ctx context.Context, tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, kind *ContextKind, cluster *clusters.Cluster) error {
	resource := v1alpha1.Resource("workloadidentities")
	if tr.UID != "" && tr.UID != wi.UID {
		return apierrors.NewConflict(resource, wi.Name, fmt.Errorf("the request is for uid %q, the identity has uid %q: perhaps it was deleted and created again", wording.Abbreviate(string(tr.UID)), wi.UID))
	}
	bound, err := r.checkBinding(ctx, tr, wi, kind, cluster)
	if err != nil {
		return err
	}
	// Bindings keep a deleted identity until the last of them is gone: what was made with its tokens is cleaned up with its tokens.
	if wi.DeletionTimestamp != nil && !(bound && slices.Contains(wi.Finalizers, v1alpha1.FinalizerBindings)) {
		return apierrors.NewConflict(resource, wi.Name, fmt.Errorf("it is being deleted since %s, no more tokens are issued for it", wi.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z")))
	}
	// Relying parties are configured with status.issuer; a token of another issuer would be refused everywhere.
	if wi.Status.Issuer != string(r.Issuer) {
		return apierrors.NewConflict(resource, wi.Name, fmt.Errorf("it was created under issuer %q, this server issues as %q: start the server with its former issuer, or create the identity anew", wi.Status.Issuer, r.Issuer))
	}
	return nil
}

func (r *REST) issue(ctx context.Context, tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, cluster *clusters.Cluster, tokenContext *issuer.Context, dryRun bool) (*v1alpha1.TokenRequest, error) {
	callers, err := r.claimOf(cluster)
	if err != nil {
		return nil, err
	}
	prepared, err := r.prepare(tr, wi, callers, tokenContext)
	if err != nil {
		return nil, err
	}
	if prepared.Shortened() {
		warning.AddWarning(ctx, "", r.shortened(tr, wi, prepared))
	}
	tr.Status.ExpirationTimestamp = metav1.NewTime(prepared.Expiry())
	if dryRun {
		return tr, nil
	}
	start := r.Clock.Now()
	token, err := r.Tokens.Sign(ctx, prepared)
	if err != nil {
		return nil, issueError(err)
	}
	r.Recorder.Signed(prepared.Algorithm(), r.Clock.Since(start))
	annotate(ctx, prepared, callers, tr.Spec.ContextObject, tokenContext)
	r.Recorder.Issued(prepared.Algorithm())
	r.Sightings.Saw(cluster, "")
	tr.Status.Token = token.Reveal()
	return tr, nil
}

// prepare checks the claims.
func (r *REST) prepare(tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, cluster *issuer.Cluster, tokenContext *issuer.Context) (*issuer.Prepared, error) {
	var requested metav1.Duration
	if tr.Spec.Duration != nil {
		requested = *tr.Spec.Duration
	}
	prepared, err := r.Tokens.Prepare(issuer.Request{
		Identity:           issuer.Identity{Namespace: wi.Namespace, Name: wi.Name, UID: string(wi.UID)},
		Audiences:          wi.Spec.Audiences,
		TargetAlgorithm:    targets.Algorithm(wi.Spec.TargetSystem.Type),
		AcceptedAlgorithms: targets.Accepted(wi.Spec.TargetSystem.Type),
		Lifetime:           requested.Duration,
		LongestAccepted:    targets.For(wi.Spec.TargetSystem.Type).Limits().Lifetime,
		Cluster:            cluster,
		Context:            tokenContext,
	})
	if err != nil {
		return nil, issueError(err)
	}
	return prepared, nil
}

// shortened warns of a lifetime that is shorter than requested.
func (r *REST) shortened(tr *v1alpha1.TokenRequest, wi *v1alpha1.WorkloadIdentity, prepared *issuer.Prepared) string {
	wanted := r.Lifetimes.Default
	if tr.Spec.Duration != nil {
		wanted = tr.Spec.Duration.Duration
	}
	reason := ""
	if prepared.Lifetime() == targets.For(wi.Spec.TargetSystem.Type).Limits().Lifetime {
		reason = fmt.Sprintf(", the longest that %s accepts", wi.Spec.TargetSystem.Type)
	}
	return fmt.Sprintf("requested duration of %s shortened to %s%s", wanted, prepared.Lifetime(), reason)
}

func isDryRun(options *metav1.CreateOptions) bool {
	return options != nil && len(options.DryRun) > 0
}

func invalid(name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), name, errs)
}
