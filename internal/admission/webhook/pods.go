package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/admission/pods"
)

// podReviews decides on pods that are created, and on ephemeral containers that are added to one.
func podReviews(f *facts) decider[corev1.Pod] {
	return func(ctx context.Context, r *request[corev1.Pod]) (answer, error) {
		if r.Resource.Group != "" || r.Resource.Resource != "pods" || r.Object == nil {
			return wrong("this webhook is for pods, not for %s", r.Resource), nil
		}
		var ephemeral []string
		switch {
		case r.Operation == admissionv1.Create && r.SubResource == "":
		case r.Operation == admissionv1.Update && r.SubResource == "ephemeralcontainers" && r.OldObject != nil:
			if ephemeral = added(r.Object, r.OldObject); len(ephemeral) == 0 {
				return answer{}, nil
			}
		default:
			return wrong("this webhook is for CREATE of pods and UPDATE of pods/ephemeralcontainers, not for %s of pods/%s", r.Operation, r.SubResource), nil
		}
		result, err := f.of(ctx, r.Namespace, r.Object, ephemeral)
		return podAnswer(result), err
	}
}

func podAnswer(result pods.Result) answer {
	a := answer{warnings: result.Warnings}
	if result.Denial != nil {
		a.code, a.reason, a.message = result.Denial.Code, result.Denial.Reason, result.Denial.Message
	}
	if len(result.Patch) > 0 {
		a.patch = result.Patch
	}
	return a
}

// added are the names of the ephemeral containers that a pod did not have; those that it has can't be changed.
func added(pod, old *corev1.Pod) []string {
	had := map[string]bool{}
	for i := range old.Spec.EphemeralContainers {
		had[old.Spec.EphemeralContainers[i].Name] = true
	}
	var names []string
	for i := range pod.Spec.EphemeralContainers {
		if name := pod.Spec.EphemeralContainers[i].Name; !had[name] {
			names = append(names, name)
		}
	}
	return names
}
