package tokenrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/wording"
)

// maxReviewed bounds how many references, and how many clusters, of an object are reviewed at once.
const maxReviewed = 32

// Landscape is what a review looks up beside what requests for tokens need. Its errors are API errors.
type Landscape struct {
	// Bindings reads CredentialsBindings.
	Bindings rest.Getter
	// Cluster returns the workload cluster of a name whose agents may request tokens; nil without one.
	Cluster func(name string) (*clusters.Cluster, error)
	// Kind returns a kind of objects, in whatever version; nil if no ContextKind has it.
	Kind func(group, kind string) (*contexts.Kind, error)
	// Data reviews requests for the data of bindings that refer to a Secret.
	Data Data
	// Deliveries returns what an object needs in a cluster.
	Deliveries func(resource schema.GroupResource, object types.NamespacedName, cluster *clusters.Cluster) ([]*identityv1alpha1.ContextDelivery, error)
}

// Data reviews requests for the data of a binding's Secret.
type Data interface {
	// Consents is an error unless the Secret to which a binding refers can be read, and lets its data be copied for it.
	Consents(ctx context.Context, binding types.NamespacedName) error
	// Reaches is an error unless the agent of a cluster may have the data of a binding for a context object.
	Reaches(ctx context.Context, cluster *clusters.Cluster, binding types.NamespacedName, object *v1alpha1.ContextObject) error
}

// ReviewREST serves contextreviews: it answers what requests for tokens with an object would be answered with, by the checks of these, and signs
// nothing. All users are let in, so whatever is answered follows from the rights of the caller to read it.
type ReviewREST struct {
	*REST
	landscape Landscape
	inFlight  *inFlight
}

var (
	_ rest.Storage              = &ReviewREST{}
	_ rest.Scoper               = &ReviewREST{}
	_ rest.Creater              = &ReviewREST{}
	_ rest.SingularNameProvider = &ReviewREST{}
)

// NewReviewREST returns the resource; it answers as tokens does.
func NewReviewREST(tokens *REST, landscape Landscape) *ReviewREST {
	return &ReviewREST{tokens, landscape, newInFlight(maxReviewsInFlight, "reviews of user %q")}
}

// New implements rest.Storage.
func (*ReviewREST) New() runtime.Object { return &identityv1alpha1.ContextReview{} }

// NamespaceScoped implements rest.Scoper.
func (*ReviewREST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*ReviewREST) GetSingularName() string { return "contextreview" }

// GroupVersionKind implements rest.GroupVersionKindProvider, in place of that of requests for tokens.
func (*ReviewREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return identityv1alpha1.SchemeGroupVersion.WithKind("ContextReview")
}

// Create reviews an object. Without the right to get it the caller does not learn whether it exists.
func (r *ReviewREST) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	created, ok := obj.(*identityv1alpha1.ContextReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a ContextReview", obj))
	}
	review := created.DeepCopy()
	review.Status, review.ManagedFields = identityv1alpha1.ContextReviewStatus{}, nil
	if admit != nil {
		if err := admit(ctx, review.DeepCopy()); err != nil {
			return nil, err
		}
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("objects are reviewed for authenticated callers only")
	}
	done, err := r.inFlight.begin(caller.GetName())
	if err != nil {
		return nil, err
	}
	defer done()
	of, err := r.reviewed(ctx, caller, review)
	if err != nil {
		return nil, err
	}
	return review, of.answer(ctx, &review.Status)
}

// review is one object, and who wants to know.
type review struct {
	*ReviewREST
	reads  *reads
	caller user.Info
	kind   *ContextKind
	object v1alpha1.ContextObject
	found  contexts.Object
	// hidden are the claims of related objects that the caller may not get, and unclear is why none of the tokens is known for that.
	hidden  sets.Set[string]
	unclear string
}

// reviewed finds the object that is reviewed.
func (r *ReviewREST) reviewed(ctx context.Context, caller user.Info, asked *identityv1alpha1.ContextReview) (*review, error) {
	named, path := asked.Spec.ContextObject, field.NewPath("spec", "contextObject")
	refused := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(identityv1alpha1.SchemeGroupVersion.WithKind("ContextReview").GroupKind(), asked.Name, errs)
	}
	version, _ := schema.ParseGroupVersion(named.APIVersion) // one that does not parse is of no kind
	kind, err := r.landscape.Kind(version.Group, named.Kind)
	if err != nil {
		return nil, err
	}
	if kind == nil {
		return nil, refused(field.NotSupported(path.Child("kind"), wording.Abbreviate(named.APIVersion+" "+named.Kind), r.Objects.Supported()))
	}
	object := v1alpha1.ContextObject{APIVersion: kind.Object.GroupVersion().String(), Kind: named.Kind, Namespace: named.Namespace, Name: named.Name, UID: named.UID}
	_, errs, err := r.validateContext(&object, path)
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return nil, refused(errs...)
	}
	row := rowOf(kind)
	resource := row.Resource.GroupResource()
	if lack, err := r.lacks(ctx, caller, "get", row.object(&object)); err != nil {
		return nil, err
	} else if lack != "" {
		return nil, apierrors.NewForbidden(resource, object.Name, errors.New(lack))
	}
	found, err := row.find(object.Namespace, object.Name)
	if err != nil {
		return nil, err
	}
	if found.UID != object.UID {
		return nil, otherUID(resource, &object, found.UID)
	}
	// One that is changed meanwhile is not found again: the rights to what was related to it then are not reviewed.
	row.find = func(string, string) (contexts.Object, error) { return found, nil }
	reads := newReads(r.Identities, r.landscape.Bindings)
	config := r.Config
	config.Identities, config.Bindings = reads, reads
	return &review{
		ReviewREST: &ReviewREST{NewREST(config), r.landscape, r.inFlight}, reads: reads,
		caller: caller, kind: row, object: object, found: found, hidden: sets.New[string](),
	}, nil
}

// answer fills in what the caller may know.
func (v *review) answer(ctx context.Context, status *identityv1alpha1.ContextReviewStatus) error {
	if err := v.relate(ctx, status); err != nil {
		return err
	}
	status.ContextKind, status.Renewal = v.found.ContextKind(), v.found.Renewal()
	status.ContextObject = &identityv1alpha1.DeliveryContext{APIVersion: v.object.APIVersion, Kind: v.object.Kind, Namespace: v.object.Namespace, Name: v.object.Name, UID: v.object.UID}
	status.Clusters, status.ClustersProblem, status.Problem = slices.Clone(v.found.Clusters()), v.found.Nowhere(), v.found.Fault()
	reached := v.found.Clusters()
	if len(reached) > maxReviewed {
		reached = reached[:maxReviewed]
		status.Unknown = append(status.Unknown, fmt.Sprintf("the object is on %d clusters, of which the first %d are reviewed", len(status.Clusters), maxReviewed))
	}
	var references []identityv1alpha1.ReviewedReference
	for _, identity := range v.found.Identities() {
		references = append(references, identityv1alpha1.ReviewedReference{WorkloadIdentity: referenceTo(identity)})
	}
	for _, binding := range v.found.Bindings() {
		references = append(references, identityv1alpha1.ReviewedReference{CredentialsBinding: referenceTo(binding)})
	}
	if len(references) > maxReviewed {
		status.Unknown = append(status.Unknown, fmt.Sprintf("the object has %d references, of which the first %d are reviewed", len(references), maxReviewed))
		references = references[:maxReviewed]
	}
	for i := range references {
		if err := v.refer(ctx, &references[i], reached); err != nil {
			return err
		}
	}
	status.References = references
	for _, cluster := range reached {
		deliveries, err := v.deliver(ctx, cluster)
		if apierrors.IsServiceUnavailable(err) {
			status.Unknown = append(status.Unknown, fmt.Sprintf("what is delivered: %v", err))
			break
		}
		if err != nil {
			return err
		}
		status.Deliveries = append(status.Deliveries, deliveries...)
	}
	return nil
}

// relate finds out which related objects the caller may not get: their claims are left out, and what they lend.
func (v *review) relate(ctx context.Context, status *identityv1alpha1.ContextReviewStatus) error {
	relations, err := v.found.Relations()
	if err != nil {
		return err
	}
	for _, related := range relations {
		kind := authority.Kind{Group: related.Resource.Group, Resource: related.Resource.Resource}
		lack, err := v.lacks(ctx, v.caller, "get", authority.Object{Kind: kind, Namespace: related.Namespace, Name: related.Name})
		if err != nil {
			return err
		}
		if lack == "" {
			continue
		}
		v.hidden.Insert(related.Claim)
		status.Unknown = append(status.Unknown, fmt.Sprintf("the claim %s: %s", related.Claim, lack))
		if related.Name == "" {
			v.unclear = lack
		}
		if related.Lends {
			v.found = v.found.Own()
			status.Unknown = append(status.Unknown, fmt.Sprintf("the identities that are lent with the claim %s: %s", related.Claim, lack))
		}
	}
	return nil
}

// refer finds out what there is by a reference.
func (v *review) refer(ctx context.Context, reference *identityv1alpha1.ReviewedReference, reached []string) (err error) {
	if bound := reference.CredentialsBinding; bound != nil {
		if reference.Unknown, err = v.lacks(ctx, v.caller, "get", objectOfReference(authority.CredentialsBindings, bound)); err != nil || reference.Unknown != "" {
			return err
		}
		name := types.NamespacedName{Namespace: bound.Namespace, Name: bound.Name}
		binding, err := v.reads.binding(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			reference.Problem = "the CredentialsBinding does not exist"
			return nil
		case err != nil:
			return err
		}
		if to := binding.SecretRef; to != nil {
			reference.Secret = &identityv1alpha1.NamespacedReference{Namespace: to.Namespace, Name: to.Name}
			return v.static(ctx, reference, name, reached)
		}
		to := binding.WorkloadIdentityRef
		reference.WorkloadIdentity = &identityv1alpha1.NamespacedReference{Namespace: to.Namespace, Name: to.Name}
	}
	if reference.Unknown, err = v.lacks(ctx, v.caller, "get", objectOfReference(authority.WorkloadIdentities, reference.WorkloadIdentity)); err != nil || reference.Unknown != "" {
		return err
	}
	for _, name := range reached {
		token, err := v.token(ctx, reference, name)
		if err != nil {
			return err
		}
		reference.Tokens = append(reference.Tokens, token)
	}
	token, err := v.token(ctx, reference, "")
	reference.Tokens = append(reference.Tokens, token)
	return err
}

// static finds out what becomes of the data of the Secret to which a binding refers.
func (v *review) static(ctx context.Context, reference *identityv1alpha1.ReviewedReference, binding types.NamespacedName, reached []string) (err error) {
	if reference.Unknown, err = v.lacks(ctx, v.caller, "get", objectOfReference(authority.Kind{Resource: "secrets"}, reference.Secret)); err != nil || reference.Unknown != "" {
		return err
	}
	if _, reference.Problem, reference.Unknown, err = refusalOf(v.landscape.Data.Consents(ctx, binding)); err != nil || reference.Problem != "" || reference.Unknown != "" {
		return err
	}
	for _, name := range reached {
		token := identityv1alpha1.ReviewedToken{Cluster: name}
		cluster, err := v.clusterOf(name)
		if err == nil {
			err = v.landscape.Data.Reaches(ctx, cluster, binding, &v.object)
		}
		if token.Code, token.Refused, token.Unknown, err = refusalOf(err); err != nil {
			return err
		}
		reference.Tokens = append(reference.Tokens, token)
	}
	return nil
}

// refusalOf is why a request is refused, or what is not known of that. An error that is not an API error is returned.
func refusalOf(err error) (code int32, refused, unknown string, _ error) {
	if err == nil {
		return 0, "", "", nil
	}
	refusal := apierrors.APIStatus(nil)
	if !errors.As(err, &refusal) {
		return 0, "", "", err
	}
	status := refusal.Status()
	if status.Code >= http.StatusInternalServerError {
		return 0, "", status.Message, nil
	}
	return status.Code, status.Message, "", nil
}

// token is what a request of the agent of a cluster would be answered with; without a cluster, one of the caller.
func (v *review) token(ctx context.Context, reference *identityv1alpha1.ReviewedReference, cluster string) (identityv1alpha1.ReviewedToken, error) {
	token := identityv1alpha1.ReviewedToken{Cluster: cluster, Unknown: v.unclear}
	if v.unclear != "" {
		return token, nil
	}
	// As a request for a token has it: errors name its resource.
	ctx = request.WithRequestInfo(request.WithNamespace(ctx, reference.WorkloadIdentity.Namespace), &request.RequestInfo{
		APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: authority.WorkloadIdentities.Resource,
	})
	claims, err := v.claims(ctx, reference, cluster)
	if err == nil {
		token.Claims = &runtime.RawExtension{Raw: claims}
		return token, nil
	}
	token.Code, token.Refused, token.Unknown, err = refusalOf(err)
	return token, err
}

// claims has a request checked as that of a caller is.
func (v *review) claims(ctx context.Context, reference *identityv1alpha1.ReviewedReference, name string) ([]byte, error) {
	tr := &v1alpha1.TokenRequest{Spec: v1alpha1.TokenRequestSpec{ContextObject: &v.object}}
	tr.Namespace, tr.Name = reference.WorkloadIdentity.Namespace, reference.WorkloadIdentity.Name
	var cluster *clusters.Cluster
	var err error
	if name == "" {
		cluster, err = v.ofCaller(ctx, tr)
	} else {
		if bound := reference.CredentialsBinding; bound != nil {
			tr.Annotations = map[string]string{v1alpha1.AnnotationBinding: bound.Namespace + "/" + bound.Name}
		}
		cluster, err = v.ofCluster(name, tr)
	}
	if err != nil {
		return nil, err
	}
	wi, tokenContext, err := v.resolve(ctx, v.kind, tr, cluster)
	if err != nil {
		return nil, err
	}
	if tokenContext != nil {
		tokenContext.Objects = slices.DeleteFunc(tokenContext.Objects, func(o issuer.Object) bool { return v.hidden.Has(o.Claim) })
	}
	named, err := v.claimOf(cluster)
	if err != nil {
		return nil, err
	}
	prepared, err := v.prepare(tr, wi, named, tokenContext)
	if err != nil {
		return nil, err
	}
	return prepared.Claims()
}

// ofCaller is the cluster of the caller, who needs the right to create tokens: nil for a person.
func (v *review) ofCaller(ctx context.Context, tr *v1alpha1.TokenRequest) (*clusters.Cluster, error) {
	lack, err := v.lacks(ctx, v.caller, "create", authority.Object{Kind: authority.WorkloadIdentityTokens, Namespace: tr.Namespace, Name: tr.Name})
	if err != nil {
		return nil, err
	}
	if lack != "" {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), tr.Name, errors.New(lack))
	}
	return v.callersCluster(ctx, v.kind, tr)
}

// ofCluster is the cluster of a name, whose agents may request the token.
func (v *review) ofCluster(name string, tr *v1alpha1.TokenRequest) (*clusters.Cluster, error) {
	cluster, err := v.clusterOf(name)
	if err != nil {
		return nil, err
	}
	return cluster, clusters.Bound(cluster, "", tr.Namespace, tr.Name, true)
}

func (v *review) clusterOf(name string) (*clusters.Cluster, error) {
	cluster, err := v.landscape.Cluster(name)
	if err == nil && cluster == nil {
		err = apierrors.NewForbidden(identityv1alpha1.Resource("workloadclusters"), name, errors.New("there is no such WorkloadCluster, so no agent requests tokens for it"))
	}
	return cluster, err
}

// deliver is what the object needs in a cluster, as far as the caller may know it.
func (v *review) deliver(ctx context.Context, name string) ([]identityv1alpha1.ReviewedDelivery, error) {
	cluster, err := v.landscape.Cluster(name)
	if apierrors.IsForbidden(err) || err == nil && cluster == nil {
		return nil, nil // it has no agent, as its tokens show
	}
	if err != nil {
		return nil, err
	}
	needed, err := v.landscape.Deliveries(v.kind.Resource.GroupResource(), types.NamespacedName{Namespace: v.object.Namespace, Name: v.object.Name}, cluster)
	if err != nil {
		return nil, err
	}
	var deliveries []identityv1alpha1.ReviewedDelivery
	for _, each := range needed {
		if each.Spec.ContextObject.UID != v.object.UID {
			continue
		}
		reviewed := identityv1alpha1.ReviewedDelivery{Cluster: name, Secret: each.Spec.Secret, CredentialsBinding: each.Spec.CredentialsBinding}
		if bound := each.Spec.CredentialsBinding; bound != nil {
			if reviewed.Unknown, err = v.lacks(ctx, v.caller, "get", objectOfReference(authority.CredentialsBindings, bound)); err != nil {
				return nil, err
			}
		}
		if reviewed.Unknown == "" {
			reviewed.WorkloadIdentity = each.Spec.WorkloadIdentity
		}
		if to := reviewed.WorkloadIdentity; to != nil {
			if reviewed.Unknown, err = v.lacks(ctx, v.caller, "get", objectOfReference(authority.WorkloadIdentities, to)); err != nil {
				return nil, err
			}
		}
		if reviewed.Unknown == "" {
			reviewed.Problem = each.Spec.Problem
		}
		deliveries = append(deliveries, reviewed)
	}
	return deliveries, nil
}

// lacks is the right that a user lacks, in the words of RBAC; empty if the user has it.
func (r *ReviewREST) lacks(ctx context.Context, subject user.Info, verb string, object authority.Object) (string, error) {
	if allowed, err := r.authorized(ctx, subject, verb, object); allowed || err != nil {
		return "", err
	}
	resource, where := object.Resource, fmt.Sprintf("in the namespace %q", object.Namespace)
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	if object.Namespace == "" {
		where = "at the cluster scope"
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", subject.GetName(), verb, resource, object.Group, where), nil
}

func referenceTo(name types.NamespacedName) *identityv1alpha1.NamespacedReference {
	return &identityv1alpha1.NamespacedReference{Namespace: name.Namespace, Name: name.Name}
}

func objectOfReference(kind authority.Kind, to *identityv1alpha1.NamespacedReference) authority.Object {
	return authority.Object{Kind: kind, Namespace: to.Namespace, Name: to.Name}
}
