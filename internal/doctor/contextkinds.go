package doctor

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/wording"
)

// checkContextKinds looks for ContextKinds whose objects the API server can't read: while there is one, no agent of a joined cluster gets a token.
func checkContextKinds(ctx context.Context, found *Diagnosis, from *cluster.API) {
	const check = "context-kinds"
	var kinds []*identityv1alpha1.ContextKind
	if !look(ctx, found, check, from, "contextkinds", func(k *identityv1alpha1.ContextKind) { kinds = append(kinds, k) }) {
		return
	}
	before := len(found.Findings)
	for _, kind := range kinds {
		served, err := resourcesOf(ctx, from, kind.Spec.Object)
		if err != nil {
			found.add(check, Fail, "", "ContextKind %s: read what its API serves: %v", kind.Name, err)
			continue
		}
		read := []string{kind.Spec.Object.Resource}
		for _, related := range kind.Spec.Related {
			read = append(read, related.Resource)
		}
		for _, resource := range read {
			if !slices.Contains(served, resource) {
				found.add(check, Fail, "install the API, or delete the ContextKind", "ContextKind %s: the cluster does not serve %s of %s/%s, and agents of joined clusters get no tokens until it does",
					kind.Name, resource, kind.Spec.Object.Group, kind.Spec.Object.Version)
				continue
			}
			for _, verb := range []string{"list", "watch"} {
				answer, err := authority.Ask(ctx, from, authority.Question{
					Subject: authority.ServiceAccount(rights.SystemNamespace, "credence-apiserver", "").In("system:authenticated"), Verb: verb,
					Object: authority.Object{Kind: authority.Kind{Group: kind.Spec.Object.Group, Resource: resource}},
				})
				switch {
				case skipped(found, check, "create subjectaccessreviews", err):
					return
				case err != nil:
					found.add(check, Fail, "", "ContextKind %s: %v", kind.Name, err)
				case !answer.Allowed:
					found.add(check, Fail, "a cluster admin applies a ClusterRole with get, list and watch on it and the label identity.credence.dev/aggregate-to-contexts: \"true\"",
						"ContextKind %s: the API server of Credence may not %s %s, and agents of joined clusters get no tokens until it may", kind.Name, verb, resource)
				}
			}
		}
	}
	if len(kinds) > 0 && len(found.Findings) == before {
		found.pass(check, "the API server may read the objects of %s", wording.Plural(len(kinds), "ContextKind", "ContextKinds"))
	}
}

// resourcesOf returns the names of the resources that the cluster serves in the group and version of another one; none if it does not serve these.
func resourcesOf(ctx context.Context, from *cluster.API, of identityv1alpha1.ContextResource) ([]string, error) {
	at := cluster.Place{API: "/apis/" + of.Group, Resource: of.Version}
	if of.Group == "" {
		at.API = "/api"
	}
	var list metav1.APIResourceList
	if err := from.Get(ctx, &list, at); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var names []string
	for _, each := range list.APIResources {
		names = append(names, each.Name)
	}
	return names, nil
}
