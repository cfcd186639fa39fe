package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

func metadata(name string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func list(items ...metav1.PartialObjectMetadata) metav1.PartialObjectMetadataList {
	return metav1.PartialObjectMetadataList{Items: items}
}

func TestListsAreReadPageByPage(t *testing.T) {
	s, api := start(t)
	s.answers["GET /api/v1/namespaces/shop/pods"] = func(r *http.Request) (int, any) {
		switch r.URL.Query().Get("continue") {
		case "":
			page := list(metadata("a"), metadata("b"))
			page.Continue = "next"
			return http.StatusOK, page
		case "next":
			return http.StatusOK, list(metadata("c"))
		}
		return http.StatusGone, nil
	}
	var names []string
	listing := cluster.Listing{Namespace: "shop", Resource: "pods", Labels: "app=cart", Fields: "spec.nodeName=n", Metadata: true}
	visit := func(object *metav1.PartialObjectMetadata) { names = append(names, object.Name) }
	testkit.Must(t, cluster.Each(t.Context(), api, listing, visit))
	if want := []string{"a", "b", "c"}; !cmp.Equal(names, want) || len(s.requests) != 2 {
		t.Errorf("read %q with %q, want %q", names, s.requests, want)
	}
	for _, want := range []string{"limit=500", "labelSelector=app%3Dcart", "fieldSelector=spec.nodeName%3Dn"} {
		if !strings.Contains(s.requests[1], want) {
			t.Errorf("request %s lacks %s", s.requests[1], want)
		}
	}
	if !strings.Contains(s.accepts[0], "as=PartialObjectMetadataList") {
		t.Errorf("metadata alone was not requested: %s", s.accepts[0])
	}
}

func TestNamesAreThoseOfTheListedObjects(t *testing.T) {
	s, api := start(t)
	const identities = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/shop/workloadidentities"
	for path, read := range map[string]func(context.Context, string) ([]string, error){
		identities: api.IdentityNames, "/api/v1/namespaces/shop/serviceaccounts": api.ServiceAccountNames, "/api/v1/namespaces": api.NamespaceNames,
		"/apis/identity.credence.dev/v1alpha1/workloadclusters":         api.WorkloadClusterNames,
		"/apis/accounts.credence.dev/v1alpha1/securitycontexttemplates": api.SecurityContextTemplateNames,
	} {
		s.with("GET "+path, http.StatusOK, list(metadata("one"), metadata("two")))
		if names, err := read(t.Context(), "shop"); err != nil || !cmp.Equal(names, []string{"one", "two"}) {
			t.Errorf("%s: %q, %v", path, names, err)
		}
	}
}

func refusal(message string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(message))
}

func TestScopeIsTheWidestThatTheUserMayList(t *testing.T) {
	forbidden := refusal(`User "jane" cannot list resource "secrets" in API group "" at the cluster scope`)
	away := errors.New("away")
	for name, test := range map[string]struct {
		namespace string
		errs      map[string]error // by namespace
		want      cluster.Scope
		err       error
	}{
		"all":       {want: cluster.Scope{}},
		"an outage": {errs: map[string]error{"": away}, err: away},
		"one namespace": {namespace: "shop", errs: map[string]error{"": forbidden}, want: cluster.Scope{
			Namespace: "shop", Note: "only the Secrets of namespace shop were looked at: you may not list those of all namespaces",
		}},
		"an outage, one namespace": {namespace: "shop", errs: map[string]error{"": forbidden, "shop": away}, err: away},
		"nowhere": {namespace: "shop", errs: map[string]error{"": forbidden, "shop": forbidden}, want: cluster.Scope{
			Nowhere: true, Note: `the Secrets were not looked at: user "jane" lacks the verb "list" on "secrets" in namespace shop`,
		}},
		"no namespace": {errs: map[string]error{"": forbidden}, want: cluster.Scope{
			Nowhere: true, Note: `the Secrets were not looked at: user "jane" lacks the verb "list" on "secrets" in all namespaces`,
		}},
		"another authorizer": {errs: map[string]error{"": refusal("no")}, want: cluster.Scope{
			Nowhere: true, Note: `the Secrets were not looked at: you lack the verb "list" on Secrets in all namespaces`,
		}},
	} {
		got, err := cluster.Widest("Secrets", test.namespace, func(namespace string) error { return test.errs[namespace] })
		if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v (-want +got):\n%s", name, err, test.err, diff)
		}
	}
}
