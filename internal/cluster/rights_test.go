package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/internal/cluster"
)

func TestMissingRightIsReadFromARefusalOfRBAC(t *testing.T) {
	got, ok := cluster.MissingRight(`secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "shop"`)
	if !ok || got.User != "jane" || got.Verb != "list" || got.Resource != "secrets" || got.Group != "" {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := cluster.MissingRight("secrets is forbidden: access denied by a webhook"); ok {
		t.Errorf("%+v of another authorizer", got)
	}
}

// Each review is sent to the API whose review it is, and its answer is the status.
func TestReviewsAreSentToTheAuthorizer(t *testing.T) {
	s, api := start(t)
	const reviews = "/apis/authorization.k8s.io/v1/"
	attributes := authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "get", Resource: "secrets"}
	spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &attributes}
	for place, review := range map[string]func() (authorizationv1.SubjectAccessReviewStatus, error){
		reviews + "subjectaccessreviews": func() (authorizationv1.SubjectAccessReviewStatus, error) {
			return api.Review(t.Context(), spec)
		},
		reviews + "namespaces/shop/localsubjectaccessreviews": func() (authorizationv1.SubjectAccessReviewStatus, error) {
			return api.ReviewLocal(t.Context(), spec)
		},
		reviews + "selfsubjectaccessreviews": func() (authorizationv1.SubjectAccessReviewStatus, error) {
			return api.ReviewSelf(t.Context(), attributes)
		},
	} {
		allowed := authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "RBAC"}
		s.with("POST "+place, http.StatusCreated, authorizationv1.SubjectAccessReview{Status: allowed})
		if status, err := review(); err != nil || !status.Allowed || status.Reason != "RBAC" {
			t.Errorf("%s: %+v, %v", place, status, err)
		}
		if sent := s.bodies[len(s.bodies)-1]; !strings.Contains(sent, `"verb":"get"`) || strings.Contains(sent, "jane") == strings.Contains(place, "/self") {
			t.Errorf("%s was sent %s", place, sent)
		}
		s.with("POST "+place, http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
		if status, err := review(); !apierrors.IsForbidden(err) || status.Allowed {
			t.Errorf("%s, refused: %+v, %v", place, status, err)
		}
	}
	granted := authorizationv1.SubjectRulesReviewStatus{
		Incomplete: true, ResourceRules: []authorizationv1.ResourceRule{{Verbs: []string{"get"}, Resources: []string{"pods"}}},
	}
	s.with("POST "+reviews+"selfsubjectrulesreviews", http.StatusCreated, authorizationv1.SelfSubjectRulesReview{Status: granted})
	rules, incomplete, err := api.RulesSelf(t.Context(), "shop")
	if err != nil || !incomplete || len(rules) != 1 || rules[0].Verbs[0] != "get" {
		t.Errorf("%+v, incomplete: %v, %v", rules, incomplete, err)
	}
	if hint := cluster.SeeAPIService(schema.GroupVersion{Group: "g.example.com", Version: "v1"}); !strings.Contains(hint, "kubectl get apiservice v1.g.example.com") {
		t.Error(hint)
	}
}
