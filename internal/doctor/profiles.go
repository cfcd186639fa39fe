package doctor

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// checkProfiles looks at what became of the profiles of a namespace, or of all (empty), of the pods of their accounts, and at namespaces with
// more profiles than the policy for pods is evaluated with.
func checkProfiles(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace string) {
	listing := cluster.Listing{API: "/apis/" + accounts.GroupName + "/v1alpha1", Namespace: namespace, Resource: "serviceaccountprofiles"}
	total := 0
	var unseen, unready, drifted, beyond []string
	left := map[string]int{}
	err := cluster.Each(ctx, workload, listing, func(p *accounts.ServiceAccountProfile) {
		total++
		if _, found := p.Labels[accounts.LabelGuardedBy]; found {
			left[p.Namespace]++
		}
		name := p.Namespace + "/" + p.Name
		if ready := meta.FindStatusCondition(p.Status.Conditions, accounts.ConditionReady); ready == nil || ready.ObservedGeneration != p.Generation {
			unseen = append(unseen, name)
		} else if ready.Status != metav1.ConditionTrue {
			unready = append(unready, fmt.Sprintf("%s (%s)", name, ready.Reason))
		}
		if meta.IsStatusConditionFalse(p.Status.Conditions, accounts.ConditionInSpec) && p.Status.Pods != nil {
			drifted = append(drifted, fmt.Sprintf("%s (%d of %d)", name, p.Status.Pods.OutOfSpec, p.Status.Pods.Total))
		}
	})
	switch {
	case apierrors.IsNotFound(err), skipped(found, "profiles", "list serviceaccountprofiles", err):
		return
	case err != nil:
		found.add("profiles", Fail, "", "list serviceaccountprofiles: %v", err)
		return
	}
	add := func(list []string, hint, what string) {
		if slices.Sort(list); len(list) > 0 {
			found.add("profiles", Warn, hint, "%s: %s", what, wording.Some(list))
		}
	}
	add(unseen, "see whether credence-server profiles runs, and its log", "no process has looked at profiles")
	add(unready, "kubectl describe serviceaccountprofile NAME -n NAMESPACE shows why", "profiles cannot be applied")
	add(drifted, "credence drift -A lists the pods: restart their workloads", "running pods no longer match the profile of their account")
	for name, n := range left {
		beyond = append(beyond, name+" ("+wording.Plural(n, "profile", "profiles")+")")
	}
	add(beyond, "fewer profiles in a namespace, or a webhook with replicas: docs/reference/profiles.md#what-refuses-a-pod",
		fmt.Sprintf("the webhook alone guards profiles of namespaces with more than %d", accounts.PolicyProfiles))
	if total > 0 && len(unseen)+len(unready)+len(drifted)+len(beyond) == 0 {
		found.pass("profiles", "%s applied, and all pods match", wording.Plural(total, "profile is", "profiles are"))
	}
}
