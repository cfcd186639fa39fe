package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/admission/pods"
)

// podObject is the part of a pod that a decision needs. managedFields are a third of the bytes of most pods, and are not read.
type podObject struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec podSpec `json:"spec"`
}

// podSpec and podContainer are those of a pod without the fields that no decision reads, and that cost the most to decode.
type (
	podSpec struct {
		corev1.PodSpec `json:",inline"`
		InitContainers []podContainer `json:"initContainers"`
		Containers     []podContainer `json:"containers"`
		Tolerations    unread         `json:"tolerations"`
	}
	podContainer struct {
		corev1.Container `json:",inline"`
		Command          unread `json:"command"`
		Args             unread `json:"args"`
		Ports            unread `json:"ports"`
		Resources        unread `json:"resources"`
		LivenessProbe    unread `json:"livenessProbe"`
		ReadinessProbe   unread `json:"readinessProbe"`
		StartupProbe     unread `json:"startupProbe"`
	}
)

// unread is any JSON value, of which nothing is kept.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*unread) UnmarshalJSON([]byte) error { return nil }

func (o *podObject) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: o.Metadata.Annotations}, Spec: o.Spec.PodSpec}
	pod.Spec.InitContainers, pod.Spec.Containers = containersOf(o.Spec.InitContainers), containersOf(o.Spec.Containers)
	return pod
}

func containersOf(read []podContainer) []corev1.Container {
	if read == nil {
		return nil
	}
	containers := make([]corev1.Container, len(read))
	for i := range read {
		containers[i] = read[i].Container
	}
	return containers
}

// podDecision decides on a pod of a namespace. ephemeral is that of pods.Request.
type podDecision func(ctx context.Context, namespace string, pod *corev1.Pod, ephemeral []string) (pods.Result, error)

// podReviews decides on pods that are created, and on ephemeral containers that are added to one.
func podReviews(decide podDecision) decider[podObject] {
	return func(ctx context.Context, r *request[podObject]) (answer, error) {
		if !isPod(r) || r.Object == nil {
			return wrong("this webhook is for pods, not for %s", r.about()), nil
		}
		var ephemeral []string
		switch {
		case r.Operation == admissionv1.Create && r.SubResource == "":
		case r.Operation == admissionv1.Update && r.SubResource == "ephemeralcontainers" && r.OldObject != nil:
			if ephemeral = addedTo(&r.Object.Spec.PodSpec, &r.OldObject.Spec.PodSpec); len(ephemeral) == 0 {
				return answer{}, nil
			}
		default:
			return wrong("this webhook is for CREATE of pods and UPDATE of pods/ephemeralcontainers, not for %s of pods/%s", r.Operation, r.SubResource), nil
		}
		result, err := decide(ctx, r.Namespace, r.Object.pod(), ephemeral)
		return answerOf(result), err
	}
}

// addedTo are the names of the ephemeral containers that a pod did not have; those that it has can't be changed.
func addedTo(pod, old *corev1.PodSpec) []string {
	had := map[string]bool{}
	for i := range old.EphemeralContainers {
		had[old.EphemeralContainers[i].Name] = true
	}
	var names []string
	for i := range pod.EphemeralContainers {
		if name := pod.EphemeralContainers[i].Name; !had[name] {
			names = append(names, name)
		}
	}
	return names
}
