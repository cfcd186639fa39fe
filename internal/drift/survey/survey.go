package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/wording"
)

// Report is what was found about pods that run.
type Report struct {
	Total int `json:"total"`
	// States counts the pods of each state.
	States map[string]int `json:"states"`
	// Pods are those that are not current, by namespace and name.
	Pods  []Pod    `json:"pods"`
	Notes []string `json:"notes"`
	// Partial reports whether only one namespace could be looked at, where all were to be.
	Partial bool `json:"-"`
}

// Pod is a pod that is not current.
type Pod struct {
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
	drift.Finding
}

// Drifted is how many pods would be another one today, or none.
func (r *Report) Drifted() int { return r.Total - r.States[drift.Current] - r.States[drift.Unknown] }

// Read decides about the pods of a namespace, or of all (empty): where these may not be listed, of the namespace home. looked is called with the
// number of pods after each.
func Read(ctx context.Context, both cluster.Both, namespace, home string, looked func(pods int)) (*Report, error) {
	if namespace != "" {
		return read(ctx, both, namespace, looked)
	}
	var report *Report
	var refusal error
	where, err := cluster.Widest("pods", home, func(in string) error {
		report, refusal = read(ctx, both, in, looked)
		return refusal
	})
	switch {
	case err != nil:
		return nil, err
	case where.Nowhere:
		return nil, refusal
	case where.Note != "":
		report.Notes, report.Partial = append(report.Notes, where.Note), true
	}
	return report, nil
}

func read(ctx context.Context, both cluster.Both, namespace string, looked func(int)) (*Report, error) {
	report := &Report{States: map[string]int{}, Pods: []Pod{}, Notes: []string{}}
	for _, state := range drift.States() {
		report.States[state] = 0
	}
	missing := map[string]int{}
	err := Each(ctx, both, namespace, func(pod *corev1.Pod, finding drift.Finding) {
		report.Total++
		report.States[finding.State]++
		if finding.State == drift.Unknown {
			missing[finding.Reason]++
		}
		if finding.State != drift.Current {
			report.Pods = append(report.Pods, Pod{pod.Namespace, pod.Name, pod.Spec.ServiceAccountName, finding})
		}
		looked(report.Total)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(report.Pods, func(a, b Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, right := range slices.Sorted(maps.Keys(missing)) {
		report.Notes = append(report.Notes, fmt.Sprintf("%s unknown: %s", wording.Plural(missing[right], "pod is", "pods are"), right))
	}
	return report, nil
}

// Each shows visit each pod that runs in a namespace, or in all (empty), with what was decided about it. Facts are read once, as they are needed.
// An error ends the look; a missing right leaves the pod unknown.
func Each(ctx context.Context, both cluster.Both, namespace string, visit func(*corev1.Pod, drift.Finding)) error {
	sources := drift.Remember(sources(both, namespace))
	var failure error
	err := cluster.Each(ctx, both.Workload, cluster.Listing{Namespace: namespace, Resource: "pods"}, func(pod *corev1.Pod) {
		if failure != nil || !drift.Runs(pod) {
			return
		}
		finding, err := sources.Decide(ctx, pod)
		if err != nil {
			right, known := unread(err)
			if !known {
				failure = fmt.Errorf("decide about pod %s/%s: %w", pod.Namespace, pod.Name, err)
				return
			}
			finding = drift.Finding{State: drift.Unknown, Reason: right}
		}
		visit(pod, finding)
	})
	if err != nil {
		return err
	}
	return failure
}

// unread words the right that is missing to read a fact; false if an error is another one.
func unread(err error) (string, bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	if right, ok := cluster.MissingRight(err.Error()); ok {
		return fmt.Sprintf("user %q lacks the verb %q on %q of API group %q", right.User, right.Verb, right.Resource, right.Group), true
	}
	return err.Error(), true
}
