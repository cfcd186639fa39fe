package drift

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
)

// The states of a pod that runs.
const (
	Current = "current"          // the same pod would be made today
	Stale   = "stale"            // another one would be made
	Refused = "refused now"      // none would be made
	Missing = "identity missing" // none would be made, as an identity or a credential spec does not exist
	Unknown = "unknown"          // what decides could not be read
)

// States are all of them, the worst last.
func States() []string { return []string{Current, Unknown, Stale, Missing, Refused} }

// Finding is the state of a pod, and why it is not current.
type Finding struct {
	State string `json:"state"`
	// Field is the path of the first field that differs; list elements are named, not counted. Has is its value, and Wants the value that it would
	// have today; empty where the field would be absent.
	Field string `json:"field,omitempty"`
	Has   string `json:"has,omitempty"`
	Wants string `json:"wants,omitempty"`
	// Reason is why the pod would be refused, or what could not be read.
	Reason string `json:"reason,omitempty"`
}

// Drifted reports whether the pod would be another one today, or none.
func (f Finding) Drifted() bool { return f.State != Current && f.State != Unknown }

// String words the finding on one line.
func (f Finding) String() string {
	switch {
	case f.Field != "":
		return fmt.Sprintf("%s %s %s → %s", f.State, f.Field, cmp.Or(f.Has, "(none)"), cmp.Or(f.Wants, "(none)"))
	case f.Reason != "":
		return f.State + ": " + f.Reason
	}
	return f.State
}

// Pod is a pod as it is stored, and what is known about it now.
type Pod struct {
	// Request is what facts.Gather has completed, and Denial what it returned. A pod of a namespace in which
	// neither identities nor profiles are applied is not Enabled.
	Request pods.Request
	Denial  *pods.Denial
	Enabled bool
	// Specs and Uses are of the GMSACredentialSpecs that the pod names.
	Specs map[string]gmsa.Spec
	Uses  map[string]authority.Answer
}

// Decide decides about the pod as it was requested, and compares it with what it is. Of two findings it is the worse one.
func Decide(p Pod) (Finding, error) {
	finding, err := Identities(p)
	if accounts := Accounts(p); slices.Index(States(), accounts.State) > slices.Index(States(), finding.State) {
		return accounts, err
	}
	return finding, err
}

// Identities is Decide without the GMSACredentialSpecs of the pod.
func Identities(p Pod) (Finding, error) {
	has := running(p.Request.Pod)
	p.Request.Pod = has
	p.Request.Pod = pods.Requested(p.Request)
	// Where the namespace does not choose, the installation does, and only the webhook knows that.
	p.Request.Delivery = cmp.Or(p.Request.Delivery, pods.DeliveryOf(has))
	var result pods.Result
	if p.Enabled {
		if result.Denial = p.Denial; p.Denial == nil {
			result = pods.Decide(p.Request)
		}
	}
	if result.Denial != nil {
		return refused(result.Denial), nil
	}
	wants, err := decision.Applied(p.Request.Pod, result.Patch)
	if err != nil {
		return Finding{}, err
	}
	return compare(has, running(wants))
}

func refused(denial *decision.Denial) Finding {
	state := Refused
	if denial.Absent {
		state = Missing
	}
	return Finding{State: state, Reason: denial.Message}
}

// running returns the parts of a pod that admission decides on and that do not come and go while it runs: ephemeral containers are added, and the
// gate is taken off.
func running(pod *corev1.Pod) *corev1.Pod {
	part := &corev1.Pod{Spec: pod.Spec}
	part.Namespace, part.Annotations = pod.Namespace, pod.Annotations
	part.Spec.EphemeralContainers = nil
	part.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(gate corev1.PodSchedulingGate) bool { return gate.Name == v1alpha1.GateToken })
	return part
}
