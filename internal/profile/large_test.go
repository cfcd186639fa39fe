package profile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
)

// An author cannot make it dear to decide about a pod, by an annotation or otherwise: all of it is looked at once.
func TestLargePods(t *testing.T) {
	var containers []corev1.Container
	for i := range 500 {
		containers = append(containers, corev1.Container{Name: fmt.Sprintf("c%d", i), SecurityContext: &corev1.SecurityContext{Privileged: new(true)}})
	}
	pod := podOf(containers...)
	pod.Spec.SecurityContext.RunAsUser = new(int64(7))
	pod.Annotations = map[string]string{accounts.AnnotationFilledIn: strings.Repeat("a,", 100_000)}
	p := profileOf(accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsUser: new(int64(7))}, Container: &corev1.SecurityContext{RunAsUser: new(int64(8)), Privileged: new(false)}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.Fill(profile.Pod{Pod: pod})
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100<<20 { // the annotation as a list for each container would be 800 MB
		t.Errorf("%d bytes are allocated", allocated)
	}
	denial := p.Refuse(profile.Pod{Pod: pod})
	if denial == nil || len(denial.Others) != 19 || !strings.Contains(denial.Message, "(and 500 more: ") {
		t.Errorf("refused with %v", denial)
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "one-more"}}
	if filled := p.Fill(profile.Pod{Pod: pod}); len(filled.Fields) > 0 {
		t.Errorf("filled in %v", filled.Fields)
	}
	if denial := p.Refuse(profile.Pod{Pod: pod}); denial == nil || !strings.HasPrefix(denial.Message, "the pod has 501 containers") {
		t.Errorf("refused with %v", denial)
	}
	if denial := (profile.Profile{}).Refuse(profile.Pod{Pod: pod}); denial != nil {
		t.Errorf("an account without a profile: %v", denial)
	}
}
