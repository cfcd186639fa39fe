package cluster_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
)

func TestKindsAreFoundAsKubectlFindsThem(t *testing.T) {
	s, api := start(t)
	s.with("GET /api", http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
	s.with("GET /apis", http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{{
		Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}},
		PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"},
	}}})
	s.with("GET /api/v1", http.StatusOK, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "nodes", SingularName: "node", Kind: "Node", ShortNames: []string{"no"}},
		{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}},
	}})
	s.with("GET /apis/apps/v1", http.StatusOK, metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}},
	}})
	deployment := cluster.Place{API: "/apis/apps/v1", Namespace: "shop", Resource: "deployments", Name: "x"}
	node := cluster.Place{API: "/api/v1", Resource: "nodes", Name: "x"}
	for word, want := range map[string]cluster.Place{
		"deployments": deployment, "deployment": deployment, "deploy": deployment, "Deployment": deployment, "deployments.apps": deployment,
		"deployments.v1.apps": deployment, "Deployment.v1.apps": deployment, "no": node, "node": node, "Node": node,
	} {
		kind, err := api.Kind(word)
		if diff := cmp.Diff(want, kind.Place("shop", "x")); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", word, err, diff)
		}
	}
	if kind, err := api.Kind("shoots"); !errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("shoots: %+v, %v, want %v", kind, err, cluster.ErrNoKind)
	}
}

func TestContextKindsAreFoundByOneWord(t *testing.T) {
	s, api := start(t)
	kind := func(group, resource, kind, scope string) identityv1alpha1.ContextKind {
		object := identityv1alpha1.ContextResource{Group: group, Version: "v1", Resource: resource, Kind: kind, Scope: scope}
		return identityv1alpha1.ContextKind{Spec: identityv1alpha1.ContextKindSpec{Object: object}}
	}
	s.with("GET /apis/identity.credence.dev/v1alpha1/contextkinds", http.StatusOK, identityv1alpha1.ContextKindList{Items: []identityv1alpha1.ContextKind{
		kind("core.gardener.cloud", "shoots", "Shoot", ""), kind("core.gardener.cloud", "projects", "Project", identityv1alpha1.ScopeCluster),
		kind("a.example.com", "databases", "Database", ""), kind("b.example.com", "databases", "Database", ""),
	}})
	for _, word := range []string{"shoots", "SHOOT", "shoots.core.gardener.cloud"} {
		if got, err := api.ContextKind(t.Context(), word); err != nil || got.Resource != "shoots" || !got.Namespaced {
			t.Errorf("%s: %+v, %v", word, got, err)
		}
	}
	if got, err := api.ContextKind(t.Context(), "project"); err != nil || got.Namespaced {
		t.Errorf("a kind without namespaces: %+v, %v", got, err)
	}
	for _, word := range []string{"databases", "pods"} {
		if got, err := api.ContextKind(t.Context(), word); !errors.Is(err, cluster.ErrNoContextKind) {
			t.Errorf("%s: %+v, %v, want an error", word, got, err)
		}
	}
	s.with("GET /apis/core.gardener.cloud/v1/namespaces/shop/shoots", http.StatusOK, list(metadata("east")))
	if names, err := api.ContextObjectNames(t.Context(), "shop", "shoots"); err != nil || !cmp.Equal(names, []string{"east"}) {
		t.Errorf("shoots: %q, %v", names, err)
	}
	if names, err := api.ContextObjectNames(t.Context(), "shop", "pods"); err != nil || names != nil {
		t.Errorf("pods: %q, %v, want none", names, err)
	}
	want := []string{"shoots.core.gardener.cloud", "projects.core.gardener.cloud", "databases.a.example.com", "databases.b.example.com"}
	if names, err := api.ContextKindNames(t.Context(), ""); err != nil || !cmp.Equal(names, want) {
		t.Errorf("kinds %q, %v, want %q", names, err, want)
	}
}
