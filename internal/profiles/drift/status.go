package drift

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/wording"
)

// Reasons of the condition InSpec.
const (
	ReasonInSpec     = "PodsInSpec"
	ReasonOutOfSpec  = "PodsOutOfSpec"
	ReasonNotDecided = "PodsNotDecided"
	ReasonEvictions  = "EvictingPods"
	ReasonStopped    = accounts.ReasonEvictionsStopped
	ReasonRestarts   = "RestartingWorkloads"
	ReasonNoRestarts = accounts.ReasonRestartsStopped
	maxFirst         = 20
	maxMessageOfPod  = 256
)

// sight is what one look found about the pods of a profile.
type sight struct {
	total, unknown int
	reason         string // why the first pod is unknown
	drifted        []pod
}

// pod is a pod that has drifted.
type pod struct {
	accounts.OutOfSpecPod
	uid        string
	ready      bool
	labels     map[string]string
	controller *metav1.OwnerReference
}

// want is what the pod would be today, as far as that differs.
func (p *pod) want() string { return p.Field + " " + p.Wants }

func (s *sight) see(object *corev1.Pod, finding drift.Finding) {
	s.total++
	switch {
	case finding.State == drift.Unknown:
		if s.unknown++; s.reason == "" {
			s.reason = finding.Reason
		}
	case finding.Drifted():
		s.drifted = append(s.drifted, pod{
			OutOfSpecPod: accounts.OutOfSpecPod{Name: object.Name, Field: finding.Field, Has: finding.Has, Wants: finding.Wants, Refused: wording.AbbreviateTo(finding.Reason, maxMessageOfPod)},
			uid:          string(object.UID), ready: ready(object), labels: object.Labels, controller: metav1.GetControllerOf(object),
		})
	}
}

func ready(object *corev1.Pod) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// sort puts the drifted pods into the order in which they are shown.
func (s *sight) sort() {
	slices.SortFunc(s.drifted, func(a, b pod) int { return strings.Compare(a.Name, b.Name) })
}

// pods is what the status of a profile has of them.
func (s *sight) pods() *accounts.ProfilePods {
	counted := &accounts.ProfilePods{Total: int32(s.total), OutOfSpec: int32(len(s.drifted))}
	for _, p := range s.drifted[:min(len(s.drifted), maxFirst)] {
		counted.First = append(counted.First, p.OutOfSpecPod)
	}
	return counted
}

// inSpec is the condition of a profile. Action is what is done about pods that have drifted.
func (s *sight) inSpec(profile *accounts.ServiceAccountProfile, action step) metav1.Condition {
	c := metav1.Condition{Type: accounts.ConditionInSpec, Status: metav1.ConditionTrue, Reason: ReasonInSpec, ObservedGeneration: profile.Generation}
	switch {
	case len(s.drifted) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, action.reason
		c.Message = fmt.Sprintf("%d of %s of the account would be another one today, or refused: list them with: credence drift -n %s", len(s.drifted), wording.Plural(s.total, "pod", "pods"), profile.Namespace)
		if action.message != "" {
			c.Message += "; " + action.message
		}
	case s.unknown > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, ReasonNotDecided
		c.Message = fmt.Sprintf("%d of %s of the account could not be decided on: %s", s.unknown, wording.Plural(s.total, "pod", "pods"), s.reason)
	default:
		c.Message = "all pods of the account are as they would be made today"
	}
	return c
}
