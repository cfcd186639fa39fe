package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/admission/templates"
)

// podSubject is a pod that is to be explained, or the pod that a workload would make.
type podSubject struct {
	kind, namespace, name string
	pod                   *corev1.Pod
	// exists is true if the pod itself was created, so that the webhook has seen it.
	exists bool
}

func (s podSubject) String() string { return s.kind + " " + s.namespace + "/" + s.name }

func newBufferedReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// subjectsOf returns the pods of an object of a file: none, one, or those of a list.
func subjectsOf(object []byte, home string) ([]podSubject, error) {
	var head struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, fmt.Errorf("a document is not an object of Kubernetes: %w", err)
	}
	if strings.HasSuffix(head.Kind, "List") {
		var subjects []podSubject
		for _, item := range head.Items {
			some, err := subjectsOf(item, home)
			if err != nil {
				return nil, err
			}
			subjects = append(subjects, some...)
		}
		return subjects, nil
	}
	kind, known := kindOf(head.Kind)
	if !known || kind.name != strings.ToLower(head.Kind) {
		return nil, nil
	}
	subject, err := subjectOf(object, kind.name, home)
	if err != nil {
		return nil, err
	}
	return []podSubject{*subject}, nil
}

func subjectOf(object []byte, kind, home string) (*podSubject, error) {
	subject := &podSubject{kind: kind, namespace: home}
	if kind == "pod" {
		subject.pod = &corev1.Pod{}
		if err := json.Unmarshal(object, subject.pod); err != nil {
			return nil, fmt.Errorf("read the pod: %w", err)
		}
		subject.name, subject.exists = subject.pod.Name, subject.pod.UID != ""
		if subject.name == "" {
			subject.name = subject.pod.GenerateName + "…"
		}
		_, mirrored := subject.pod.Annotations[corev1.MirrorPodAnnotationKey]
		// The API server sets the default before the webhook sees the pod.
		if subject.pod.Spec.ServiceAccountName == "" && !mirrored {
			subject.pod.Spec.ServiceAccountName = orDefault(subject.pod.Spec.DeprecatedServiceAccount)
		}
	} else {
		// One that another workload made is of interest here too.
		alone, err := withoutOwners(object)
		if err != nil {
			return nil, err
		}
		workload, err := templates.Find(alone, nil)
		if err != nil {
			return nil, err
		}
		if workload == nil {
			return nil, errors.New("the workload is made by another one in a way that can't be read: explain that one")
		}
		subject.name, subject.pod = workload.Name, workload.Pod
	}
	if subject.pod.Namespace != "" {
		subject.namespace = subject.pod.Namespace
	}
	if err := checkName(subject.namespace); err != nil {
		return nil, fmt.Errorf("metadata.namespace: %w", err)
	}
	if account := subject.pod.Spec.ServiceAccountName; account != "" {
		if err := checkName(account); err != nil {
			return nil, fmt.Errorf("spec.serviceAccountName: %w", err)
		}
	}
	return subject, nil
}

func orDefault(account string) string {
	if account == "" {
		return "default"
	}
	return account
}

func withoutOwners(object []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, fmt.Errorf("read the workload: %w", err)
	}
	var metadata map[string]json.RawMessage
	if len(members["metadata"]) > 0 {
		if err := json.Unmarshal(members["metadata"], &metadata); err != nil {
			return nil, fmt.Errorf("read the workload's metadata: %w", err)
		}
	}
	delete(metadata, "ownerReferences")
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	members["metadata"] = text
	return json.Marshal(members)
}
