package doctor

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// checkProfiles looks at what became of the profiles of a namespace, or of all (empty), of the pods of their accounts, and at namespaces with
// more profiles than the policy for pods is evaluated with. Enabled are the namespaces whose service accounts give identities; nil: not known.
func checkProfiles(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace string, enabled map[string]bool) {
	listing := cluster.Listing{API: "/apis/" + accounts.GroupName + "/v1alpha1", Namespace: namespace, Resource: "serviceaccountprofiles"}
	total := 0
	var unseen, unready, unserved, drifted, stopped, beyond []string
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
		if len(p.Spec.WorkloadIdentities) > 0 && enabled != nil && !enabled[p.Namespace] {
			unserved = append(unserved, name)
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, accounts.ConditionInSpec); c != nil && c.Status == metav1.ConditionFalse && p.Status.Pods != nil {
			drifted = append(drifted, fmt.Sprintf("%s (%d of %d)", name, p.Status.Pods.OutOfSpec, p.Status.Pods.Total))
			if c.Reason == accounts.ReasonEvictionsStopped || c.Reason == accounts.ReasonRestartsStopped {
				stopped = append(stopped, fmt.Sprintf("%s (%s)", name, c.Reason))
			}
		}
	})
	switch {
	case apierrors.IsNotFound(err), skipped(found, "profiles", "list serviceaccountprofiles", err):
		return
	case err != nil:
		found.add("profiles", Fail, "", "list serviceaccountprofiles: %v", err)
		return
	}
	before := len(found.Findings)
	add := func(verdict string, list []string, hint, what string) {
		if slices.Sort(list); len(list) > 0 {
			found.add("profiles", verdict, hint, "%s: %s", what, wording.Some(list))
		}
	}
	add(Fail, unserved, "a cluster admin runs: kubectl label namespace NAME --overwrite "+v1alpha1.LabelNamespaceIdentities+"="+v1alpha1.NamespaceEnabled+"; or take the list out of the profile",
		"profiles list identities in namespaces without the label "+v1alpha1.LabelNamespaceIdentities+"="+v1alpha1.NamespaceEnabled+", so that their pods get none")
	add(Warn, unseen, "see whether credence-server profiles runs, and its log", "no process has looked at profiles")
	add(Warn, unready, "kubectl describe serviceaccountprofile NAME -n NAMESPACE shows why", "profiles cannot be applied")
	add(Warn, drifted, "credence drift -A lists the pods: restart their workloads", "running pods no longer match the profile of their account")
	add(Warn, stopped, "kubectl describe serviceaccountprofile NAME -n NAMESPACE shows the workload and the reason", "running pods are not replaced any more")
	for name, n := range left {
		beyond = append(beyond, name+" ("+wording.Plural(n, "profile", "profiles")+")")
	}
	add(Warn, beyond, "fewer profiles in a namespace, or a webhook with replicas: docs/reference/profiles.md#what-refuses-a-pod",
		fmt.Sprintf("the webhook alone guards profiles of namespaces with more than %d", accounts.PolicyProfiles))
	if total > 0 && len(found.Findings) == before {
		found.pass("profiles", "%s applied, and all pods match", wording.Plural(total, "profile is", "profiles are"))
	}
}
