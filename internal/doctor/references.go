package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/wording"
)

// maxReviewed bounds the objects of a ContextKind that are looked at: each costs a request.
const maxReviewed = 200

// checkReferences looks for bindings whose identity is missing, for Secrets whose binding is missing and, in all namespaces, for objects of
// ContextKinds whose binding or identity is missing.
func checkReferences(ctx context.Context, found *Diagnosis, both cluster.Both, namespace string) {
	const check, hint = "references", "create it, or have them name another one; what it was made with may need its tokens to be deleted"
	var missing []string
	bindings := sets.New[string]()
	err := cluster.Each(ctx, both.Identity, cluster.Listing{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Resource: "credentialsbindings"}, func(b *v1alpha1.CredentialsBinding) {
		bindings.Insert(b.Namespace + "/" + b.Name)
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionFalse && strings.HasSuffix(ready.Reason, "NotFound") && (namespace == "" || namespace == b.Namespace) {
			missing = append(missing, fmt.Sprintf("CredentialsBinding %s/%s: %s", b.Namespace, b.Name, ready.Message))
		}
	})
	if err == nil {
		labeled := cluster.Listing{Namespace: namespace, Resource: "secrets", Labels: v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor, Metadata: true}
		_ = cluster.Each(ctx, both.Workload, labeled, func(s *metav1.PartialObjectMetadata) { // the check of tokens reports what can't be read
			name := s.Annotations[v1alpha1.AnnotationNamespace] + "/" + s.Annotations[v1alpha1.AnnotationBinding]
			if s.Annotations[v1alpha1.AnnotationBinding] != "" && !bindings.Has(name) {
				missing = append(missing, fmt.Sprintf("Secret %s/%s: CredentialsBinding %s does not exist", s.Namespace, s.Name, name))
			}
		})
	} else if !skipped(found, check, "list credentialsbindings of all namespaces", err) {
		found.add(check, Fail, "", "list CredentialsBindings: %v", err)
	}
	if namespace == "" {
		_ = cluster.Each(ctx, both.Identity, cluster.Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "contextkinds"}, func(kind *identityv1alpha1.ContextKind) {
			missing = append(missing, missingOf(ctx, found, both.Identity, kind.Spec.Object)...)
		})
	}
	if len(missing) > 0 {
		found.add(check, Warn, hint, "%s a binding or identity that does not exist: %s", wording.Plural(len(missing), "object names", "objects name"), wording.Some(missing))
	}
}

// missingOf returns the objects of a kind whose binding or identity is missing, as the API server reviews them. The check of ContextKinds
// reports kinds that can't be read.
func missingOf(ctx context.Context, found *Diagnosis, from *cluster.API, of identityv1alpha1.ContextResource) (missing []string) {
	kind := cluster.Kind{Resource: of.Resource}
	kind.Group, kind.Version, kind.Kind = of.Group, of.Version, of.Kind
	var objects []metav1.ObjectMeta
	at := kind.Place("", "")
	_ = cluster.Each(ctx, from, cluster.Listing{API: at.API, Resource: at.Resource, Metadata: true}, func(o *metav1.PartialObjectMetadata) { objects = append(objects, o.ObjectMeta) })
	if n := len(objects); n > maxReviewed {
		found.skip("references", "the first %d of %d %s were looked at", maxReviewed, n, of.Resource)
		objects = objects[:maxReviewed]
	}
	for _, object := range objects {
		review, err := explain.ReviewObject(ctx, from, kind, object)
		if err != nil {
			continue // such as one that is gone by now
		}
		for _, reference := range review.Status.References {
			name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
			gone := slices.ContainsFunc(reference.Tokens, func(t identityv1alpha1.ReviewedToken) bool { return t.Code == http.StatusNotFound })
			switch to, by := reference.WorkloadIdentity, reference.CredentialsBinding; {
			case by != nil && strings.Contains(reference.Problem, "does not exist"):
				missing = append(missing, fmt.Sprintf("%s %s: CredentialsBinding %s/%s does not exist", of.Kind, name, by.Namespace, by.Name))
			case to != nil && gone:
				missing = append(missing, fmt.Sprintf("%s %s: WorkloadIdentity %s/%s does not exist", of.Kind, name, to.Namespace, to.Name))
			}
		}
	}
	return missing
}
