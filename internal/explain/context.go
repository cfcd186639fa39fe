package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

// Context is what becomes of a context object.
type Context struct {
	// Verdict is admitted, refused if any token or Secret is, unaffected if the object uses nothing, and unknown.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`

	v1alpha1.ContextReviewStatus
	// Quotas are those that its CredentialsBindings list.
	Quotas []Quota `json:"quotas,omitempty"`
	// LastFailure is the newest Warning of an agent on the object.
	LastFailure *inventory.Warning `json:"lastFailure,omitempty"`
	Notes       []string           `json:"notes,omitempty"`
}

// Quota limits the objects that name a CredentialsBinding.
type Quota struct {
	v1alpha1.NamespacedReference
	CredentialsBinding v1alpha1.NamespacedReference       `json:"credentialsBinding"`
	Spec               authenticationv1alpha1.QuotaSpec   `json:"spec"`
	Status             authenticationv1alpha1.QuotaStatus `json:"status,omitzero"`
}

// agentsReporter is what agents report Events as.
const agentsReporter = "credence-agent"

// ReviewObject has the API server review an object that was read.
func ReviewObject(ctx context.Context, api *cluster.API, kind cluster.Kind, object metav1.ObjectMeta) (*v1alpha1.ContextReview, error) {
	review := v1alpha1.ContextReview{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ContextReview"},
		Spec: v1alpha1.ContextReviewSpec{ContextObject: v1alpha1.DeliveryContext{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		}},
	}
	err := api.Create(ctx, cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Resource: "contextreviews"}, review, &review)
	return &review, err
}

// ContextObject finds out what becomes of an object that was read.
func ContextObject(ctx context.Context, api *cluster.API, kind cluster.Kind, object metav1.ObjectMeta) (*Context, error) {
	review, err := ReviewObject(ctx, api, kind, object)
	if err != nil {
		return nil, err
	}
	x := &Context{ContextReviewStatus: review.Status}
	if err := x.findQuotas(ctx, api); err != nil {
		return nil, err
	}
	if err := x.findWarning(ctx, api, object); err != nil {
		return nil, err
	}
	x.judge()
	return x, nil
}

// findQuotas reads the Quotas that the bindings list. Verdicts are about tokens, so what can't be read is a note.
func (x *Context) findQuotas(ctx context.Context, api *cluster.API) error {
	for _, reference := range x.References {
		at := reference.CredentialsBinding
		if at == nil {
			continue
		}
		var binding authenticationv1alpha1.CredentialsBinding
		err := api.Get(ctx, &binding, stored("credentialsbindings", at.Namespace, at.Name))
		switch {
		case apierrors.IsNotFound(err): // the review has reported it
			continue
		case apierrors.IsForbidden(err):
			x.Notes = append(x.Notes, fmt.Sprintf("which Quotas CredentialsBinding %s/%s lists is not known: %v", at.Namespace, at.Name, err))
			continue
		case err != nil:
			return err
		}
		for _, listed := range binding.Quotas {
			var quota authenticationv1alpha1.Quota
			err := api.Get(ctx, &quota, stored("quotas", listed.Namespace, listed.Name))
			name := fmt.Sprintf("Quota %s/%s, which CredentialsBinding %s/%s lists,", listed.Namespace, listed.Name, at.Namespace, at.Name)
			switch {
			case apierrors.IsNotFound(err):
				x.Notes = append(x.Notes, name+" does not exist: the object can't use more than it does until there is one")
			case apierrors.IsForbidden(err):
				x.Notes = append(x.Notes, fmt.Sprintf("%s can't be shown: %v", name, err))
			case err != nil:
				return err
			default:
				x.Quotas = append(x.Quotas, Quota{v1alpha1.NamespacedReference{Namespace: listed.Namespace, Name: listed.Name}, *at, quota.Spec, quota.Status})
			}
		}
	}
	return nil
}

// stored is the place of an object of the API of identities.
func stored(resource, namespace, name string) cluster.Place {
	return cluster.Place{API: "/apis/" + authenticationv1alpha1.SchemeGroupVersion.String(), Namespace: namespace, Resource: resource, Name: name}
}

// findWarning keeps the newest Warning of an agent. Agents report nothing on objects without a namespace.
func (x *Context) findWarning(ctx context.Context, api *cluster.API, object metav1.ObjectMeta) error {
	if object.Namespace == "" {
		return nil
	}
	err := cluster.Each(ctx, api, cluster.Listing{Namespace: object.Namespace, Resource: "events", Fields: "type=Warning,involvedObject.uid=" + string(object.UID)}, func(event *corev1.Event) {
		if event.ReportingController == agentsReporter || event.Source.Component == agentsReporter {
			x.LastFailure = inventory.Newer(x.LastFailure, event)
		}
	})
	if apierrors.IsForbidden(err) {
		x.Notes = append(x.Notes, "what agents have reported is not known: "+err.Error())
		return nil
	}
	return err
}

// judge finds the verdict: a refusal counts more than what is not known.
func (x *Context) judge() {
	var refused, open []string
	open = append(open, x.Unknown...)
	for _, problem := range []string{x.ClustersProblem, x.Problem} {
		if problem != "" {
			refused = append(refused, problem)
		}
	}
	for _, reference := range x.References {
		if reference.Problem != "" {
			refused = append(refused, TitleOfReference(reference.WorkloadIdentity, reference.CredentialsBinding)+": "+reference.Problem)
		}
		if reference.Unknown != "" {
			open = append(open, reference.Unknown)
		}
		for _, token := range reference.Tokens {
			// Where agents are given tokens, it does not matter that the user is not.
			if token.Cluster == "" && len(x.Clusters) > 0 {
				continue
			}
			if token.Refused != "" {
				refused = append(refused, token.Refused)
			}
			if token.Unknown != "" {
				open = append(open, token.Unknown)
			}
		}
	}
	for _, delivery := range x.Deliveries {
		if delivery.Problem != "" {
			refused = append(refused, delivery.Problem)
		}
		if delivery.Unknown != "" {
			open = append(open, delivery.Unknown)
		}
	}
	x.Verdict = Admitted
	switch {
	case len(refused) > 0:
		x.Verdict, x.Reason = Refused, refused[0]
	case len(open) > 0:
		slices.Sort(open)
		x.Verdict, x.Reason = Unknown, strings.Join(slices.Compact(open), "; ")
	case len(x.References) == 0:
		x.Verdict, x.Reason = Unaffected, fmt.Sprintf("it refers to no identity and no binding, by ContextKind %s", x.ContextKind)
	}
	x.Reason = wording.Redact(x.Reason)
}

// TitleOfReference names an identity with the binding by which it is used, for people.
func TitleOfReference(identity, binding *v1alpha1.NamespacedReference) string {
	switch {
	case identity == nil && binding == nil:
		return "what it refers to"
	case identity == nil:
		return fmt.Sprintf("CredentialsBinding %s/%s", binding.Namespace, binding.Name)
	case binding == nil:
		return fmt.Sprintf("identity %s/%s", identity.Namespace, identity.Name)
	}
	return fmt.Sprintf("identity %s/%s by CredentialsBinding %s/%s", identity.Namespace, identity.Name, binding.Namespace, binding.Name)
}
