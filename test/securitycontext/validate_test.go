package securitycontext

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubepod "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	kubecore "k8s.io/kubernetes/pkg/apis/core/v1"
	kubevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/credence-id/credence/internal/securitycontext"
)

// complaint is an error with everything that a user or a program can see of it. The type of a wrong value is not, as
// Kubernetes' own differ between its internal types and those of the API.
type complaint struct {
	Type         field.ErrorType
	Field, Value string
	Detail, Text string
}

func complaints(t *testing.T, errs field.ErrorList) []complaint {
	t.Helper()
	var all []complaint
	for _, err := range errs {
		value, marshalErr := json.Marshal(err.BadValue)
		if marshalErr != nil {
			t.Fatalf("value of %v: %v", err, marshalErr)
		}
		all = append(all, complaint{err.Type, err.Field, string(value), err.Detail, err.Error()})
	}
	return all
}

// firstDifference returns "" for equal lists.
func firstDifference(t *testing.T, want, got []complaint) string {
	t.Helper()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("error %d is Kubernetes' alone: %s", i, shown(t, want[i]))
		case i >= len(want):
			return fmt.Sprintf("error %d is Credence's alone: %s", i, shown(t, got[i]))
		case want[i] != got[i]:
			return fmt.Sprintf("error %d of Kubernetes: %s\nof Credence: %s", i, shown(t, want[i]), shown(t, got[i]))
		}
	}
	return ""
}

func ofKubernetes(t *testing.T, pod *corev1.Pod) field.ErrorList {
	t.Helper()
	var internal core.Pod
	if err := kubecore.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &internal, nil); err != nil {
		t.Fatal(err)
	}
	options := kubepod.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	return kubevalidation.ValidatePodSpec(&internal.Spec, &internal.ObjectMeta, field.NewPath("spec"), options)
}

// All errors of generated pods are compared, in their order.
func TestValidate(t *testing.T) {
	capabilities.ResetForTest()
	capabilities.Setup(true, 0)
	t.Cleanup(capabilities.ResetForTest)

	seen := map[string]int{}
	for seed := range int64(10_000) {
		pod := pods{rand.New(rand.NewSource(seed))}.pod()
		want := complaints(t, ofKubernetes(t, pod))
		got := complaints(t, securitycontext.Validate(&pod.Spec, field.NewPath("spec")))
		if diff := firstDifference(t, want, got); diff != "" {
			t.Fatalf("seed %d: %s\nof %s", seed, diff, shown(t, pod.Spec))
		}
		if len(want) == 0 {
			seen["nothing"]++
		}
		for _, c := range want {
			seen[c.Detail]++
		}
	}
	mustHaveSeen(t, seen)
}

// mustHaveSeen fails where pods had no occasion for a difference.
func mustHaveSeen(t *testing.T, seen map[string]int) {
	t.Helper()
	for _, part := range []string{
		"nothing", "must be no more than 253", "RFC 1123", "cannot be an empty string", "size must be under", "runAsUserName cannot be an empty string",
		"control characters", "more than one backslash", "Domain length", "NetBios nor the DNS", "User cannot be empty", "User length",
		"only periods or spaces", "following characters", "must be identical", "all containers must be", "hostNetwork must be true",
		"for a linux pod", "cannot be set for a windows pod", "may not be set for a windows pod", "with empty `spec.os.name`", `supported values: "linux"`,
		`supported values: "SIGKILL", "SIGTERM"`, `supported values: "SIGABRT"`,
	} {
		n := 0
		for detail, count := range seen {
			if strings.Contains(detail, part) {
				n += count
			}
		}
		if n < 20 {
			t.Errorf("only %d of the generated pods' errors are %q", n, part)
		}
	}
}

// User names have the most rules: they are compared by themselves, too.
func TestRunAsUserNames(t *testing.T) {
	at := field.NewPath("spec", "securityContext")
	accepted := 0
	for seed := range int64(100_000) {
		name := pods{rand.New(rand.NewSource(seed))}.userName()
		theirs := &core.SecurityContext{WindowsOptions: &core.WindowsSecurityContextOptions{RunAsUserName: &name}}
		ours := &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: &name}}}
		want := complaints(t, kubevalidation.ValidateSecurityContext(theirs, at, true, false))
		got := complaints(t, securitycontext.Validate(ours, field.NewPath("spec")))
		if diff := firstDifference(t, want, got); diff != "" {
			t.Fatalf("seed %d: user name %q: %s", seed, name, diff)
		}
		if len(want) == 0 {
			accepted++
		}
	}
	if accepted < 10_000 || accepted > 90_000 {
		t.Errorf("%d of 100000 names are accepted: this compares little", accepted)
	}
}

// Every signal that either side knows, and one that none does.
func TestStopSignals(t *testing.T) {
	for _, os := range []corev1.OSName{corev1.Linux, corev1.Windows} {
		pod := pods{rand.New(rand.NewSource(0))}.pod()
		pod.Spec = corev1.PodSpec{OS: &corev1.PodOS{Name: os}}
		for i, signal := range append(signals(t), "SIGNONE") {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c-%d", i), Image: "image", Lifecycle: &corev1.Lifecycle{StopSignal: &signal}})
		}
		kubecore.SetObjectDefaults_Pod(pod)
		want := complaints(t, ofKubernetes(t, pod))
		got := complaints(t, securitycontext.Validate(&pod.Spec, field.NewPath("spec")))
		if diff := firstDifference(t, want, got); diff != "" {
			t.Errorf("%s: %s", os, diff)
		}
	}
}

// signals are those that Kubernetes lists where it refuses one.
func signals(t *testing.T) []corev1.Signal {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}, Containers: []corev1.Container{{Name: "c", Image: "image", Lifecycle: &corev1.Lifecycle{StopSignal: new(corev1.Signal("SIGNONE"))}}}}}
	kubecore.SetObjectDefaults_Pod(pod)
	errs := ofKubernetes(t, pod)
	if len(errs) != 1 {
		t.Fatalf("want one error, got %v", errs)
	}
	_, list, _ := strings.Cut(errs[0].Detail, ": ")
	var all []corev1.Signal
	for name := range strings.SplitSeq(list, ", ") {
		all = append(all, corev1.Signal(strings.Trim(name, `"`)))
	}
	if len(all) != 65 {
		t.Fatalf("want 65 signals, got %v", all)
	}
	return all
}

// shown is a value as JSON, without what makes it unreadable.
func shown(t *testing.T, v any) string {
	t.Helper()
	var document strings.Builder
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return cut(document.String())
}

// cut shortens lines: a credential spec has up to 64 KiB.
func cut(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(line) > 300 {
			lines[i] = line[:300] + "…"
		}
	}
	return strings.Join(lines, "\n")
}
