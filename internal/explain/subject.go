package explain

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/templates"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Subject is a pod that is to be explained, or the pod that a workload would make.
type Subject struct {
	kind, namespace, name string
	pod                   *corev1.Pod
	// exists is true if the pod itself was created, so that the webhook has seen it.
	exists bool
	// faults are warnings about the file that the subject is from.
	faults []string
}

// String names the subject.
func (s Subject) String() string { return s.kind + " " + s.namespace + "/" + s.name }

// SubjectsOf returns the pods of an object of a file: none, one, or those of a list.
func SubjectsOf(object []byte, home string) ([]Subject, error) {
	var head struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, fmt.Errorf("a document is not an object of Kubernetes: %w", err)
	}
	if strings.HasSuffix(head.Kind, "List") {
		var subjects []Subject
		for _, item := range head.Items {
			some, err := SubjectsOf(item, home)
			if err != nil {
				return nil, err
			}
			subjects = append(subjects, some...)
		}
		return subjects, nil
	}
	kind, known := KindOf(head.Kind)
	if !known || kind.Name != strings.ToLower(head.Kind) || kind.object == nil {
		return nil, nil
	}
	subject, err := SubjectOf(object, kind.Name, home)
	if err != nil {
		return nil, err
	}
	unknown, err := kjson.UnmarshalStrict(object, kind.object(), kjson.DisallowUnknownFields)
	for _, fault := range unknown {
		subject.faults = append(subject.faults, fmt.Sprintf("%v: it has no effect, unless the cluster is newer than this program", fault))
	}
	return []Subject{*subject}, err
}

// SubjectOf returns the pod of an object of a kind, which is in the namespace home if it names none.
func SubjectOf(object []byte, kind, home string) (*Subject, error) {
	subject := &Subject{kind: kind, namespace: home}
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
			subject.pod.Spec.ServiceAccountName = cmp.Or(subject.pod.Spec.DeprecatedServiceAccount, "default")
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
	if err := cluster.CheckName(subject.namespace); err != nil {
		return nil, fmt.Errorf("metadata.namespace: %w", err)
	}
	if account := subject.pod.Spec.ServiceAccountName; account != "" {
		if err := cluster.CheckName(account); err != nil {
			return nil, fmt.Errorf("spec.serviceAccountName: %w", err)
		}
	}
	return subject, nil
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

// SubjectOfAccount returns a pod that runs as a service account.
func SubjectOfAccount(namespace, name string) Subject {
	return Subject{kind: KindServiceAccount, namespace: namespace, name: name, pod: &corev1.Pod{Spec: AnyPod(name)}}
}

// AnyPod returns a pod of a service account that conforms to the strictest security standard, and to quotas that want requests and limits.
func AnyPod(account string) corev1.PodSpec {
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	return corev1.PodSpec{
		ServiceAccountName: account,
		SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "any", Image: "none.invalid/none", Resources: corev1.ResourceRequirements{Requests: few, Limits: few},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
}

// AccountsWith lists the service accounts of a namespace that list an identity in their annotation or their profile. Profiles that the user may not list
// are left out.
func AccountsWith(ctx context.Context, workload *cluster.API, namespace, identity string) ([]string, error) {
	var names []string
	err := cluster.Each(ctx, workload, cluster.Listing{Namespace: namespace, Resource: "serviceaccounts", Metadata: true}, func(o *metav1.PartialObjectMetadata) {
		if listed, err := tokensecret.ParseIdentities(o.Annotations[v1alpha1.AnnotationAccountIdentities]); err == nil && slices.Contains(listed, identity) {
			names = append(names, o.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	err = cluster.Each(ctx, workload, cluster.Listing{API: accountsAPI, Namespace: namespace, Resource: "serviceaccountprofiles"}, func(p *accounts.ServiceAccountProfile) {
		if slices.Contains(p.Spec.WorkloadIdentities, identity) && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	return names, err
}

// KindServiceAccount and KindIdentity are kinds of which pods that run as an account are explained.
const KindServiceAccount, KindIdentity = "serviceaccount", "workloadidentity"

// Kind is a kind that has pods.
type Kind struct {
	Name, API string
	short     []string
	object    func() any // nil: of a kind whose pods are in other objects
}

// Resource is the kind's name in paths of the API.
func (k Kind) Resource() string { return strings.Replace(k.Name+"s", "ys", "ies", 1) }

// kinds are sorted by name.
func kinds() []Kind {
	return []Kind{
		{"cronjob", "/apis/batch/v1", []string{"cj"}, func() any { return &batchv1.CronJob{} }},
		{"daemonset", "/apis/apps/v1", []string{"ds"}, func() any { return &appsv1.DaemonSet{} }},
		{"deployment", "/apis/apps/v1", []string{"deploy"}, func() any { return &appsv1.Deployment{} }},
		{"job", "/apis/batch/v1", nil, func() any { return &batchv1.Job{} }},
		{"pod", "/api/v1", []string{"po"}, func() any { return &corev1.Pod{} }},
		{"replicaset", "/apis/apps/v1", []string{"rs"}, func() any { return &appsv1.ReplicaSet{} }},
		{KindServiceAccount, "/api/v1", []string{"sa"}, nil},
		{"statefulset", "/apis/apps/v1", []string{"sts"}, func() any { return &appsv1.StatefulSet{} }},
		{KindIdentity, "/apis/" + v1alpha1.GroupName + "/v1alpha1", []string{"wi"}, nil},
	}
}

// KindOf finds a kind by what kubectl takes for it: pod, pods, po, Pod, pods.v1. and deployments.apps.
func KindOf(word string) (Kind, bool) {
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	for _, kind := range kinds() {
		if word != kind.Name && word != kind.Resource() && !slices.Contains(kind.short, word) {
			continue
		}
		version, of, _ := strings.Cut(group, ".")
		names := []string{"", strings.TrimPrefix(path.Dir(kind.API), "/apis/")}
		if slices.Contains(names, group) || version == "v1" && (of == "" && kind.API == "/api/v1" || of == names[1]) {
			return kind, true
		}
	}
	return Kind{}, false
}

// KindNames are the kinds that have pods. Those of files hold the template of their pods themselves.
func KindNames(ofFiles bool) []string {
	var names []string
	for _, kind := range kinds() {
		if kind.object != nil || !ofFiles {
			names = append(names, kind.Name)
		}
	}
	return names
}

// SubjectsOfText returns the pods of the objects in YAML or JSON, of one or several documents.
func SubjectsOfText(text []byte, home string) ([]Subject, error) {
	var subjects []Subject
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return subjects, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		some, err := SubjectsOf(object, home)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, some...)
	}
}

// FilledIn returns the subject with what the profile of its account fills in. A pod that exists has it already.
func (s Subject) FilledIn(x *Pod) Subject {
	if x.filled != nil && !s.exists {
		s.pod = x.filled
	}
	return s
}

// NamesSpecs reports whether the pod names GMSACredentialSpecs.
func (s Subject) NamesSpecs() bool { return len(gmsa.References(s.pod, false)) > 0 }
