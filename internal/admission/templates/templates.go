// Package templates finds the pod in a workload: Deployment, StatefulSet, DaemonSet, Job, CronJob, ReplicaSet or
// ReplicationController. In goes the
// JSON of one, out come the pod that it would make, and warnings about refusals of that pod. It refuses nothing
// itself: missing objects may be created a moment later.
package templates

import (
	"cmp"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/decision"
)

// defaultAccount is the service account of pods that do not name one.
const defaultAccount = "default"

// workload is what of all these kinds concerns their pods.
type workload struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Paused      bool                   `json:"paused"`   // of a Deployment
		Replicas    int32                  `json:"replicas"` // absent only from a Scale of 0
		Template    corev1.PodTemplateSpec `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

func (w *workload) path() string {
	if w.Kind == "CronJob" {
		return "spec.jobTemplate.spec.template."
	}
	return "spec.template."
}

func (w *workload) template() *corev1.PodTemplateSpec {
	if w.Kind == "CronJob" {
		return &w.Spec.JobTemplate.Spec.Template
	}
	return &w.Spec.Template
}

// Workload is a workload with its pod.
type Workload struct {
	Kind, Name string
	Pod        *corev1.Pod
	// Path is where the pod is in the workload, with a dot at its end.
	Path string
	// Owned reports whether it names an owner, which any user can write.
	Owned bool
}

// Find returns the workload of a JSON object; nil if there is nothing to warn of: its pods are as they were, or it is made
// from another workload, whose author was warned. It returns an error for JSON that is not a workload.
func Find(object, old []byte) (*Workload, error) {
	workload, err := Changed(object, old)
	if err != nil || workload == nil || workload.Owned {
		return nil, err
	}
	return workload, nil
}

// Changed returns the workload of a JSON object, with or without an owner; nil if its pods are as they were. It returns an error for
// JSON that is not a workload.
func Changed(object, old []byte) (*Workload, error) {
	now, err := decode(object)
	if err != nil {
		return nil, err
	}
	if len(old) > 0 {
		before, err := decode(old)
		if err != nil {
			return nil, err
		}
		if equality.Semantic.DeepEqual(now.template(), before.template()) {
			return nil, nil
		}
	}
	template := now.template()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = now.Metadata.Namespace
	pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, defaultAccount)
	name := cmp.Or(now.Metadata.Name, now.Metadata.GenerateName)
	return &Workload{Kind: now.Kind, Name: name, Pod: pod, Path: now.path(), Owned: metav1.GetControllerOfNoCopy(&now.Metadata) != nil}, nil
}

// Revived reports whether a change brings an old template back without writing it: a Deployment has its controller roll back, or is paused, or a ReplicaSet or
// ReplicationController, or its Scale, grows or loses the controller that keeps it small. It returns an error for JSON that is not a workload.
func Revived(object, old []byte) (rollback, grown bool, err error) {
	now, err := decode(object)
	if err != nil {
		return false, false, err
	}
	before := &workload{}
	if len(old) > 0 {
		if before, err = decode(old); err != nil {
			return false, false, err
		}
	}
	switch now.Kind {
	case "Deployment":
		to := now.Metadata.Annotations[appsv1.DeprecatedRollbackTo]
		rolls := to != "" && to != before.Metadata.Annotations[appsv1.DeprecatedRollbackTo]
		return rolls || now.Spec.Paused && !before.Spec.Paused, false, nil
	case "ReplicaSet", "ReplicationController", "Scale":
		was, is := metav1.GetControllerOfNoCopy(&before.Metadata), metav1.GetControllerOfNoCopy(&now.Metadata)
		return false, now.Spec.Replicas > before.Spec.Replicas || was != nil && (is == nil || is.UID != was.UID), nil
	}
	return false, false, nil
}

func decode(object []byte) (*workload, error) {
	var w workload
	if err := json.Unmarshal(object, &w); err != nil {
		return nil, fmt.Errorf("decode workload: %w", err)
	}
	return &w, nil
}

// Warnings are those about what a decision on the pod of a workload would be.
func (w *Workload) Warnings(result decision.Result) []string {
	if result.Denial != nil {
		return []string{fmt.Sprintf("pods of %s %s will be refused: %s", w.Kind, w.Name, result.Denial.Message)}
	}
	return result.Warnings
}
