package pods

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/target"
)

// oldLabelOS is a label of nodes that still has the value of kubernetes.io/os, and that still selects them.
const oldLabelOS = "beta.kubernetes.io/os"

// selected is the operating system that a node selector names, or "".
func selected(nodes map[string]string) string {
	return cmp.Or(nodes[corev1.LabelOSStable], nodes[oldLabelOS])
}

// NeedsRuntimeClass reports whether the pod names a RuntimeClass, and no stronger field determines its operating
// system.
func NeedsRuntimeClass(pod *corev1.Pod) bool {
	return pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName != "" && osByPod(pod) == ""
}

// OS is the operating system of a pod that the pod or the nodes of its RuntimeClass determine, or empty.
func OS(pod *corev1.Pod, runtimeClassNodes map[string]string) target.OS {
	switch os := target.OS(cmp.Or(osByPod(pod), selected(runtimeClassNodes))); os {
	case target.Linux, target.Windows:
		return os
	}
	return ""
}

// osOf is the operating system of a pod: Linux, unless the pod or its RuntimeClass determines another.
func osOf(r Request) target.OS { return cmp.Or(OS(r.Pod, r.RuntimeClassNodes), target.Linux) }

// osByPod is the operating system by the pod itself, the strongest field first, or "".
func osByPod(pod *corev1.Pod) string {
	if pod.Spec.OS != nil && pod.Spec.OS.Name != "" {
		return string(pod.Spec.OS.Name)
	}
	if os := selected(pod.Spec.NodeSelector); os != "" {
		return os
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	linux, windows := admits(terms, string(target.Linux)), admits(terms, string(target.Windows))
	switch {
	case windows && !linux:
		return string(target.Windows)
	case linux && !windows:
		return string(target.Linux)
	}
	return ""
}

// admits reports whether a node with this operating system could meet one of the terms, whatever their other requirements.
func admits(terms []corev1.NodeSelectorTerm, os string) bool {
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			return false // an empty term selects no node
		}
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return (e.Key == corev1.LabelOSStable || e.Key == oldLabelOS) && !meets(e, os)
		})
	})
}

func meets(e corev1.NodeSelectorRequirement, os string) bool {
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return slices.Contains(e.Values, os)
	case corev1.NodeSelectorOpNotIn:
		return !slices.Contains(e.Values, os)
	case corev1.NodeSelectorOpDoesNotExist:
		return false
	}
	return true
}
