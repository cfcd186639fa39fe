package cluster

import (
	"context"
	"fmt"
	"regexp"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rbacRefusal is how the RBAC authorizer of Kubernetes words that a right is missing.
var rbacRefusal = regexp.MustCompile(`User "([^"]*)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"`)

// right is what a user lacks.
type right struct{ User, Verb, Resource, Group string }

// MissingRight returns the right that a refusal of the RBAC authorizer names; not ok if it is worded otherwise.
func MissingRight(message string) (lacking right, ok bool) {
	if m := rbacRefusal.FindStringSubmatch(message); m != nil {
		return right{User: m[1], Verb: m[2], Resource: m[3], Group: m[4]}, true
	}
	return right{}, false
}

// Review implements authority.Reviewer.
func (a *API) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.SubjectAccessReview{Spec: spec}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	err := a.Create(ctx, Place{API: "/apis/authorization.k8s.io/v1", Resource: "subjectaccessreviews"}, review, &review)
	return review.Status, err
}

// SeeAPIService is how to see whether a group of the API is available.
func SeeAPIService(group schema.GroupVersion) string {
	return fmt.Sprintf("a cluster admin sees whether Credence's API is available: kubectl get apiservice %s.%s", group.Version, group.Group)
}

// ReviewLocal has a right in the namespace that the attributes name reviewed, which an admin of the namespace may do.
func (a *API) ReviewLocal(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.LocalSubjectAccessReview{Spec: spec}
	review.APIVersion, review.Kind, review.Namespace = "authorization.k8s.io/v1", "LocalSubjectAccessReview", spec.ResourceAttributes.Namespace
	err := a.Create(ctx, Place{API: "/apis/authorization.k8s.io/v1", Namespace: review.Namespace, Resource: "localsubjectaccessreviews"}, review, &review)
	return review.Status, err
}

// ReviewSelf has a right of the caller reviewed, which every user may do.
func (a *API) ReviewSelf(ctx context.Context, attributes authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	err := a.Create(ctx, Place{API: "/apis/authorization.k8s.io/v1", Resource: "selfsubjectaccessreviews"}, review, &review)
	return review.Status, err
}

// RulesSelf are the rights of the caller in a namespace. incomplete reports that the authorizer can't list them all.
func (a *API) RulesSelf(ctx context.Context, namespace string) (rules []rbacv1.PolicyRule, incomplete bool, err error) {
	review := authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	err = a.Create(ctx, Place{API: "/apis/authorization.k8s.io/v1", Resource: "selfsubjectrulesreviews"}, review, &review)
	for _, rule := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	return rules, review.Status.Incomplete, err
}
