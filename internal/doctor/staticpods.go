package doctor

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/wording"
)

// checkStaticPods names the pods of kubelets' own files that run without a security context, and whether their nodes have a guard. Namespaces are
// those with mirror pods. A node has a guard if the kubelet has it from the runtime's version; what the guard did to a pod is not in the API.
func checkStaticPods(ctx context.Context, found *Diagnosis, workload *cluster.API, namespaces []string) {
	const check = "static-pods"
	total := 0
	without := map[string][]string{} // by node
	for _, namespace := range namespaces {
		err := cluster.Each(ctx, workload, cluster.Listing{Namespace: namespace, Resource: "pods"}, func(p *corev1.Pod) {
			if _, mirrored := p.Annotations[corev1.MirrorPodAnnotationKey]; !mirrored {
				return
			}
			if total++; runsWithoutContext(p) {
				without[p.Spec.NodeName] = append(without[p.Spec.NodeName], p.Namespace+"/"+p.Name)
			}
		})
		if skipped(found, check, "list pods in namespace "+namespace, err) {
			continue
		}
		if err != nil {
			found.add(check, Fail, "", "list pods in namespace %s: %v", namespace, err)
			return
		}
	}
	if len(without) == 0 {
		if total > 0 {
			found.pass(check, "no container of %s runs without a security context", wording.Plural(total, "static pod", "static pods"))
		}
		return
	}
	var guarded, unguarded []string
	err := cluster.Each(ctx, workload, cluster.Listing{Resource: "nodes"}, func(n *corev1.Node) {
		if hasGuard(n.Status.NodeInfo.ContainerRuntimeVersion) {
			guarded = append(guarded, without[n.Name]...)
			delete(without, n.Name)
		}
	})
	unknown := apierrors.IsForbidden(err)
	if err != nil && !unknown {
		found.add(check, Fail, "", "list nodes: %v", err)
		return
	}
	for _, pods := range without {
		unguarded = append(unguarded, pods...)
	}
	slices.Sort(guarded)
	slices.Sort(unguarded)
	const hint = "a guard on the node tightens them, and credence profile harden their manifests: docs/howto/static-pods.md"
	switch {
	case unknown:
		found.add(check, Warn, hint, "static pods run without a security context, and you may not list nodes, which show whether they have a guard: %s", wording.Some(unguarded))
		return
	case len(unguarded) > 0:
		found.add(check, Warn, hint, "static pods run without a security context, on nodes without a guard: %s", wording.Some(unguarded))
	}
	if len(guarded) > 0 {
		found.pass(check, "static pods without a security context are on nodes with a guard, which tightens what it creates unless its file lists it: %s", wording.Some(guarded))
	}
}

// runsWithoutContext reports whether a container runs for which neither it nor its pod sets anything.
func runsWithoutContext(p *corev1.Pod) bool {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Name == s.Name && s.State.Running != nil && equality.Semantic.DeepEqual(securitycontext.Effective(p.Spec.SecurityContext, c.SecurityContext), &corev1.SecurityContext{}) {
				return true
			}
		}
	}
	return false
}

// hasGuard reads a version such as containerd://2.1.4+credence-guard.
func hasGuard(version string) bool {
	_, build, _ := strings.Cut(version, "+")
	return slices.Contains(strings.Split(build, "."), v1alpha1.RuntimeGuard)
}
