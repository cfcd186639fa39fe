package survey

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/gmsa"
)

const accountsAPI = "/apis/" + accounts.GroupName + "/v1alpha1"

// sources read as a user. Accounts and identities are read as lists, so that their number makes few requests; one by one where that is not
// allowed.
func sources(both cluster.Both, namespace string) drift.Sources {
	serviceAccounts := listed(both.Workload, cluster.Listing{Namespace: namespace, Resource: "serviceaccounts", Metadata: true}, func(o *metav1.PartialObjectMetadata) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Annotations: o.Annotations}}
	}, false)
	identities := listed(both.Identity, cluster.Identities(namespace), func(i *v1alpha1.WorkloadIdentity) *v1alpha1.WorkloadIdentity { return i }, false)
	profiles := listed(both.Workload, cluster.Listing{API: accountsAPI, Namespace: namespace, Resource: "serviceaccountprofiles"}, func(p *accounts.ServiceAccountProfile) *accounts.ServiceAccountProfile { return p }, true)
	namespaces := listed(both.Workload, cluster.Listing{Resource: "namespaces", Metadata: true}, func(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata { return o }, false)
	return drift.Sources{
		Labels: func(ctx context.Context, name string) (map[string]string, error) {
			var one *metav1.PartialObjectMetadata
			var err error
			if namespace == "" {
				one, err = namespaces(ctx, "", name)
			} else {
				err = both.Workload.Get(ctx, &one, cluster.Place{Resource: "namespaces", Name: name})
			}
			if err != nil {
				return nil, err
			}
			return one.Labels, nil
		},
		Spec: func(ctx context.Context, name string) (gmsa.Spec, error) {
			var object struct {
				Credspec map[string]any `json:"credspec"`
			}
			err := both.Workload.Get(ctx, &object, cluster.Place{API: "/apis/" + windowsv1.SchemeGroupVersion.String(), Resource: windowsv1.ResourceName, Name: name})
			if apierrors.IsNotFound(err) {
				return gmsa.Spec{}, nil
			}
			if err != nil {
				return gmsa.Spec{}, err
			}
			return gmsa.SpecOf(object.Credspec), nil
		},
		Sources: facts.Sources{
			ServiceAccount: serviceAccounts,
			Identity:       identities,
			Profile:        profiles,
			Template: func(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error) {
				var template accounts.SecurityContextTemplate
				return &template, both.Workload.Get(ctx, &template, cluster.Place{API: accountsAPI, Resource: "securitycontexttemplates", Name: name})
			},
			Right: func(ctx context.Context, q authority.Question) (authority.Answer, error) {
				return authority.Ask(ctx, localFirst{both.Workload}, q)
			},
			Nodes: func(ctx context.Context, name string) (map[string]string, error) {
				var class struct {
					Scheduling struct {
						NodeSelector map[string]string `json:"nodeSelector"`
					} `json:"scheduling"`
				}
				err := both.Workload.Get(ctx, &class, cluster.Place{API: "/apis/node.k8s.io/v1", Resource: "runtimeclasses", Name: name})
				return class.Scheduling.NodeSelector, err
			},
		},
	}
}

// localFirst reviews a right in a namespace by a LocalSubjectAccessReview, which an admin of the namespace may create, and else by one of the
// cluster.
type localFirst struct{ *cluster.API }

// Review implements authority.Reviewer.
func (l localFirst) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace != "" {
		if status, err := l.ReviewLocal(ctx, spec); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return status, err
		}
	}
	return l.API.Review(ctx, spec)
}

// listed returns a way to read objects of a list by name. The list is read when the first one is needed. Where the list is not allowed, objects are
// read one by one, which may be; and those that it does not have, which may have been created since. Of an optional kind most do not exist, and are not
// read again. A list that the cluster does not serve is an error, and not empty, unless its kind is optional.
func listed[Object any, Kept metav1.Object](api *cluster.API, l cluster.Listing, keep func(*Object) Kept, optional bool) func(ctx context.Context, namespace, name string) (Kept, error) {
	var all map[string]Kept
	var failure error
	return func(ctx context.Context, namespace, name string) (one Kept, err error) {
		if all == nil {
			all = map[string]Kept{}
			failure = cluster.Each(ctx, api, l, func(object *Object) {
				kept := keep(object)
				all[kept.GetNamespace()+"/"+kept.GetName()] = kept
			})
		}
		forbidden := apierrors.IsForbidden(failure)
		one, known := all[namespace+"/"+name]
		switch {
		case failure != nil && !forbidden && !(optional && apierrors.IsNotFound(failure)):
			return one, fmt.Errorf("list %s: %s", l.Resource, failure)
		case known && !forbidden:
			return one, nil
		case optional && !forbidden:
			return one, apierrors.NewNotFound(schema.GroupResource{Resource: l.Resource}, name)
		}
		var object Object
		if err := api.Get(ctx, &object, cluster.Place{API: l.API, Namespace: namespace, Resource: l.Resource, Name: name}); err != nil {
			return one, err
		}
		return keep(&object), nil
	}
}
