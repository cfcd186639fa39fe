package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/credence-id/credence/test/testkit"
)

// ours reports whether a group of the API is there because Credence is installed.
func ours(group string) bool {
	return group == "authentication.gardener.cloud" || group == "windows.k8s.io" || strings.HasSuffix(group, ".credence.dev")
}

// surface is what discovery shows of a cluster; a bare one leaves out what Credence adds.
type surface struct {
	discovery.DiscoveryInterface
	groups    []*metav1.APIGroup
	resources []*metav1.APIResourceList
}

func (s surface) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.resources, nil
}

func (s surface) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredResources(s)
}

func (p plane) surface(t *testing.T) surface {
	t.Helper()
	client := p.client(t).Discovery()
	s := surface{DiscoveryInterface: client}
	eventually(t, func() (err error) {
		s.groups, s.resources, err = client.ServerGroupsAndResources()
		return err
	})
	return s
}

func (s surface) bare() surface {
	s.groups = slices.DeleteFunc(slices.Clone(s.groups), func(g *metav1.APIGroup) bool { return ours(g.Name) })
	s.resources = slices.DeleteFunc(slices.Clone(s.resources), func(l *metav1.APIResourceList) bool {
		version, err := schema.ParseGroupVersion(l.GroupVersion)
		return err != nil || ours(version.Group)
	})
	return s
}

// words are those that kubectl takes for a kind, and those that it takes for a category.
func (s surface) words() (kinds, categories sets.Set[string]) {
	kinds, categories = sets.New[string](), sets.New[string]()
	for _, list := range s.resources {
		for _, each := range list.APIResources {
			if !strings.Contains(each.Name, "/") {
				kinds.Insert(each.Name, each.SingularName, each.Kind, strings.ToLower(each.Kind)).Insert(each.ShortNames...)
				categories.Insert(each.Categories...)
			}
		}
	}
	return kinds.Delete(""), categories
}

// meanings resolves words as kubectl does.
func (s surface) meanings(t *testing.T, kinds, categories sets.Set[string]) map[string]string {
	t.Helper()
	groups := need(restmapper.GetAPIGroupResources(s))(t)
	mapper, found := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), s, nil), map[string]string{}
	for word := range kinds {
		kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: word})
		if err != nil {
			found[word] = err.Error()
			continue
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		found[word] = mapping.Resource.String()
	}
	for word := range categories {
		resources, _ := restmapper.NewDiscoveryCategoryExpander(s).Expand(word)
		found["category "+word] = fmt.Sprint(resources)
	}
	return found
}

// Each word of kubectl means what it means without Credence, and those of our own kinds mean them.
func TestWordsOfKubectlStay(t *testing.T) {
	inTurn(t)
	both := shared.surface(t)
	bare := both.bare()
	kinds, categories := bare.words()
	if len(kinds) < 100 || !categories.Has("all") || !kinds.Has("quota") {
		t.Fatalf("%d words, categories %v", len(kinds), categories)
	}
	now := both.meanings(t, kinds, categories)
	for word, before := range bare.meanings(t, kinds, categories) {
		if now[word] != before {
			t.Errorf("%s is %s, and was %s", word, now[word], before)
		}
	}
	seen := map[string]string{}
	for _, list := range both.resources {
		for _, each := range list.APIResources {
			if version, _ := schema.ParseGroupVersion(list.GroupVersion); !ours(version.Group) || strings.Contains(each.Name, "/") {
				continue
			}
			title := each.Name + "." + list.GroupVersion
			for _, word := range append([]string{each.Name, each.SingularName}, each.ShortNames...) {
				if at := seen[word]; at != "" && !strings.HasPrefix(at, each.Name+".") || word == "" || kinds.Has(word) {
					t.Errorf("%s has the word %q, which %s has, too", title, word, at)
				}
				seen[word] = title
			}
		}
	}

	namespace := shared.namespace(t)
	shared.must(t, "", "kubectl", "-n", namespace, "create", "quota", "ids", "--hard=count/pods=3")
	for _, verb := range []string{"get", "describe", "delete"} {
		if got := shared.must(t, "", "kubectl", "-n", namespace, verb, "quota", "ids"); !strings.Contains(got, "ids") {
			t.Errorf("kubectl %s quota:\n%s", verb, got)
		}
	}
	shared.must(t, "", "kubectl", "-n", namespace, "get", "credentialquota")
}

// Tools such as Argo CD and Velero list and watch every kind, as a cluster admin or as a viewer: each is served whom RBAC lets.
func TestEveryKindIsListed(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	viewer := "viewer-of-" + namespace
	shared.clusterRoleBinding(t, viewer, "view")
	users := map[string]*rest.Config{"a cluster admin": shared.config(t), "a viewer": shared.as(t, viewer)}
	everyKind(t, users)
	shared.must(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"banana","namespace":%[1]q},"spec":{"audiences":["a"],"targetSystem":{"type":"other"}}},
		{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"Quota","metadata":{"name":"limits","namespace":%[1]q},"spec":{"scope":{"apiVersion":"v1","kind":"Secret"},"metrics":{"objects":"3"}}}]}`, namespace),
		"kubectl", "create", "-f", "-")
	shared.must(t, fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"name":"infra","namespace":%q},"provider":{"type":"other"},"workloadIdentityRef":{"name":"banana"}}`, namespace),
		"kubectl", "create", "-f", "-")
	everyKind(t, users)
}

// everyKind lists and watches each kind in all namespaces.
func everyKind(t *testing.T, users map[string]*rest.Config) {
	t.Helper()
	var wait sync.WaitGroup
	defer wait.Wait()
	busy := make(chan struct{}, 8)
	for _, list := range shared.surface(t).resources {
		version := need(schema.ParseGroupVersion(list.GroupVersion))(t)
		root := "/apis/" + list.GroupVersion
		if version.Group == "" {
			root = "/api/" + list.GroupVersion
		}
		ours := slices.Contains([]string{"authentication.gardener.cloud", "identity.credence.dev", "accounts.credence.dev"}, version.Group)
		for _, each := range list.APIResources {
			if ours && slices.Contains(each.Verbs, "list") && !slices.Contains(each.Categories, "credence") {
				t.Errorf("kubectl get credence leaves out %s.%s", each.Name, list.GroupVersion)
			}
			for user, config := range users {
				for verb, query := range map[string]string{"list": "?limit=500", "watch": "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true"} {
					if !slices.Contains(each.Verbs, verb) || strings.Contains(each.Name, "/") {
						continue
					}
					wait.Go(func() {
						busy <- struct{}{}
						defer func() { <-busy }()
						allowed := mayRead(t, config, verb, version.Group, each.Name)
						got := do(t, config, "GET", root+"/"+each.Name+query, "", "")
						if allowed && (got.Code != http.StatusOK || strings.Contains(string(got.Body), `"type":"ERROR"`)) || !allowed && got.Code != http.StatusForbidden {
							t.Errorf("%s, %s of %s.%s, allowed %v: %d %.300s", user, verb, each.Name, list.GroupVersion, allowed, got.Code, got.Body)
						}
					})
				}
			}
		}
	}
}

// mayRead has RBAC reviewed, as tools do.
func mayRead(t *testing.T, config *rest.Config, verb, group, resource string) bool {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Error(err)
		return false
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
		return false
	}
	return review.Status.Allowed
}

// clusterRoleBinding gives a user a ClusterRole in all namespaces, until the test ends.
func (p plane) clusterRoleBinding(t *testing.T, user, role string) {
	t.Helper()
	bindings := p.client(t).RbacV1().ClusterRoleBindings()
	must(t, errOf(bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})))
	t.Cleanup(func() {
		expect(t, bindings.Delete(context.WithoutCancel(t.Context()), user, metav1.DeleteOptions{}))
	})
	testkit.Wait(t, func(context.Context) error {
		if mayRead(t, p.as(t, user), "list", "", "configmaps") {
			return nil
		}
		return fmt.Errorf("%s is not allowed to list yet", user)
	})
}
