package pods

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// patch collects additions.
type patch struct{ operations []Operation }

func (p *patch) add(path string, value any) {
	p.operations = append(p.operations, Operation{Op: "add", Path: path, Value: value})
}

// extend appends to the list at path. A list that is missing or null is made; add replaces nothing but null there.
func extend[T any](p *patch, path string, list, values []T) {
	switch {
	case len(values) == 0:
	case list == nil:
		p.add(path, values)
	default:
		for _, value := range values {
			p.add(path+"/-", value)
		}
	}
}

// gate holds a new pod back from the scheduler until its tokens exist. A pod that has a node already can not be held.
func (p *patch) gate(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		return
	}
	if slices.ContainsFunc(pod.Spec.SchedulingGates, isGate) {
		return
	}
	extend(p, "/spec/schedulingGates", pod.Spec.SchedulingGates, []corev1.PodSchedulingGate{{Name: v1alpha1.GateToken}})
}

func isGate(gate corev1.PodSchedulingGate) bool { return gate.Name == v1alpha1.GateToken }

// pointer escapes a member's name for a JSON pointer (RFC 6901, section 3).
func pointer(member string) string {
	return strings.ReplaceAll(strings.ReplaceAll(member, "~", "~0"), "/", "~1")
}
