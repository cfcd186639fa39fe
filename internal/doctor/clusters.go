package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/internal/wording"
)

// away is how long a cluster may be unseen without a warning. Its agent renews tokens, and its own credentials, more often.
const away = 24 * time.Hour

// Away returns a warning if a workload cluster seems to be switched off, or an empty text.
func Away(c *identityv1alpha1.WorkloadCluster, now time.Time) string {
	seen := c.Status.LastSeenTime
	switch {
	case seen == nil || now.Sub(seen.Time) <= away:
		return ""
	case now.Sub(seen.Time) > membership.Lifetime:
		return fmt.Sprintf("WorkloadCluster %s was last seen at %s: its credentials have expired, so that it has to join again", c.Name, seen.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("WorkloadCluster %s was last seen at %s: after two days it has to join again", c.Name, seen.UTC().Format(time.RFC3339))
}

// look shows to visit all objects of a kind of the identity cluster. It reports whether a check can go on: if not, the reason is noted, unless the
// cluster does not serve the kind, as an API server of before.
func look[Object any](ctx context.Context, found *Diagnosis, check string, from *cluster.API, resource string, visit func(*Object)) bool {
	err := cluster.Each(ctx, from, cluster.Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: resource}, visit)
	if err != nil && !apierrors.IsNotFound(err) && !skipped(found, check, "list "+resource, err) {
		found.add(check, Fail, "", "list %s: %v", resource, err)
	}
	return err == nil
}

// checkClusters looks for workload clusters that have not been seen for a day, and for accounts of those that are gone.
func (d *Examination) checkClusters(ctx context.Context, found *Diagnosis, from *cluster.API) {
	all, warned := 0, 0
	names, users := sets.New[string](), sets.New[string]()
	if !look(ctx, found, "clusters", from, "workloadclusters", func(c *identityv1alpha1.WorkloadCluster) {
		all++
		names.Insert(c.Name)
		users.Insert(c.Spec.Users...)
		if text := Away(c, d.Now()); text != "" {
			warned++
			found.add("clusters", Warn, "see whether the cluster and its agent run; a cluster admin of the identity cluster lets it join again: credence cluster join "+c.Name+" --out FOLDER", "%s", text)
		}
	}) {
		return
	}
	gone := sets.New[string]()
	accounts := cluster.Listing{Namespace: identityv1alpha1.WorkloadClusters, Resource: "serviceaccounts", Metadata: true}
	err := cluster.Each(ctx, from, accounts, func(a *metav1.PartialObjectMetadata) {
		for _, end := range []string{"-agent", "-webhook"} {
			if name, ok := strings.CutSuffix(a.Name, end); ok && !names.Has(name) && !users.Has("system:serviceaccount:"+a.Namespace+":"+a.Name) {
				gone.Insert(name)
			}
		}
	})
	if err != nil && !skipped(found, "clusters", "list service accounts of the namespace "+identityv1alpha1.WorkloadClusters, err) {
		found.add("clusters", Fail, "", "list service accounts of the namespace %s: %v", identityv1alpha1.WorkloadClusters, err)
	}
	for _, name := range sets.List(gone) {
		found.add("clusters", Warn, "a cluster admin takes them away: credence cluster leave "+name,
			"namespace %s has service accounts of a cluster %s, which has no WorkloadCluster: they may read what their RoleBindings give them", identityv1alpha1.WorkloadClusters, name)
	}
	if err == nil && all > 0 && warned+len(gone) == 0 {
		found.pass("clusters", "%s seen within a day, or never yet", wording.Plural(all, "WorkloadCluster was", "WorkloadClusters were"))
	}
}
