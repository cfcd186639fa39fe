package securitycontext

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/security/apparmor"
	kubernetes "k8s.io/kubernetes/pkg/securitycontext"
	"sigs.k8s.io/randfill"

	"github.com/credence-id/credence/internal/securitycontext"
)

// effectiveOfKubernetes is what the kubelet uses: its effective context, and the two profiles that it finds elsewhere.
func effectiveOfKubernetes(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) *corev1.SecurityContext {
	ofPod, ofContainer := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: pod.DeepCopy()}}, &corev1.Container{SecurityContext: container.DeepCopy()}
	effective := kubernetes.DetermineEffectiveSecurityContext(ofPod, ofContainer).DeepCopy()
	effective.AppArmorProfile = apparmor.GetProfile(ofPod, ofContainer)
	// As getSeccompProfile of pkg/kubelet/kuberuntime does with fields.
	switch {
	case container != nil && container.SeccompProfile != nil:
		effective.SeccompProfile = container.SeccompProfile
	case pod != nil:
		effective.SeccompProfile = pod.SeccompProfile
	}
	return effective
}

func compareEffective(t *testing.T, of string, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
	t.Helper()
	if diff := cmp.Diff(effectiveOfKubernetes(pod, container), securitycontext.Effective(pod, container)); diff != "" {
		t.Fatalf("%s: effective context (-Kubernetes +Credence):\n%s\nof pod %s\nand container %s", of, diff, shown(t, pod), shown(t, container))
	}
}

// All fields, with any values.
func TestEffective(t *testing.T) {
	for seed := range int64(20_000) {
		var pod *corev1.PodSecurityContext
		var container *corev1.SecurityContext
		fill := randfill.NewWithSeed(seed).NumElements(0, 3)
		// Where everything is set, half is unset, and where little is, the other half.
		fill.NilChance([]float64{0.1, 0.5, 0.9}[seed%3]).Fill(&pod)
		fill.Fill(&container)
		compareEffective(t, "any values", pod, container)
	}
}

// The contexts of pods that people could write, of all their containers.
func TestEffectiveOfPods(t *testing.T) {
	for seed := range int64(5_000) {
		pod := pods{rand.New(rand.NewSource(seed))}.pod()
		for _, c := range pod.Spec.Containers {
			compareEffective(t, c.Name, pod.Spec.SecurityContext, c.SecurityContext)
		}
		for _, c := range pod.Spec.EphemeralContainers {
			compareEffective(t, c.Name, pod.Spec.SecurityContext, c.SecurityContext)
		}
	}
}

// Each way to set windowsOptions in a pod, with each way to set them in a container.
func TestEffectiveWindowsOptions(t *testing.T) {
	all := func(level string) []*corev1.WindowsSecurityContextOptions {
		found := []*corev1.WindowsSecurityContextOptions{nil}
		for i := range 24 {
			o := &corev1.WindowsSecurityContextOptions{}
			if i&1 != 0 {
				o.GMSACredentialSpecName = new(level + "-name")
			}
			if i&2 != 0 {
				o.GMSACredentialSpec = new(level + "-contents")
			}
			if i&4 != 0 {
				o.RunAsUserName = new(level + "-user")
			}
			if i/8 > 0 {
				o.HostProcess = new(i/8 == 2)
			}
			found = append(found, o)
		}
		return found
	}
	for _, ofPod := range all("pod") {
		for _, ofContainer := range all("container") {
			pod, container := &corev1.PodSecurityContext{WindowsOptions: ofPod}, &corev1.SecurityContext{WindowsOptions: ofContainer}
			compareEffective(t, "both", pod, container)
			compareEffective(t, "no pod", nil, container)
			compareEffective(t, "no container", pod, nil)
		}
	}
	compareEffective(t, "neither", nil, nil)
}
