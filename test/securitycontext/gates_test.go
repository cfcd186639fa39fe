package securitycontext

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kubepod "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	kubecore "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/credence-id/credence/internal/securitycontext"
)

// The gates of windowsOptions are gone from Kubernetes, as they have been on for long. One of its gates that is still off,
// ContainerStopSignals, is held to the same rule today: what it governs is dropped from all containers unless the old pod uses
// it. So each container gets a user name exactly where it has a stop signal, and must keep the one where Kubernetes leaves it
// the other.
func TestDropDisabledAsStopSignals(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range int64(2_000) {
		r := rand.New(rand.NewSource(seed))
		pod, old := marked(r), marked(r)
		if r.Intn(4) == 0 {
			old = nil
		}

		theirs, theirOld := internal(t, pod), internal(t, old)
		kubepod.DropDisabledPodFields(theirs, theirOld)
		want := map[string]bool{}
		for name, c := range containersOf(external(t, theirs)) {
			want[name] = c.Lifecycle != nil && c.Lifecycle.StopSignal != nil
		}

		before := usersOf(pod)
		securitycontext.DropDisabled(securitycontext.Gates{}, &pod.Spec, specOf(old))
		if diff := cmp.Diff(want, usersOf(pod)); diff != "" {
			t.Fatalf("seed %d: containers that keep what is gated (-Kubernetes +Credence):\n%s\nold pod:\n%s", seed, diff, shown(t, specOf(old)))
		}
		switch {
		case !anyOf(before):
			outcomes["nothing to drop"]++
		case anyOf(want):
			outcomes["kept"]++
		default:
			outcomes["dropped"]++
		}
	}
	for _, outcome := range []string{"nothing to drop", "kept", "dropped"} {
		if outcomes[outcome] < 20 {
			t.Errorf("%s: only %d of 2000 pods", outcome, outcomes[outcome])
		}
	}
}

// With all gates on, which they are in Kubernetes, neither side takes anything from windowsOptions.
func TestDropNothing(t *testing.T) {
	on := securitycontext.Gates{WindowsGMSA: true, WindowsRunAsUserName: true, WindowsHostProcess: true}
	for seed := range int64(1_000) {
		pod := pods{rand.New(rand.NewSource(seed)), true}.pod()
		theirs := internal(t, pod)
		kubepod.DropDisabledPodFields(theirs, nil)
		securitycontext.DropDisabled(on, &pod.Spec, nil)
		if diff := cmp.Diff(optionsOf(external(t, theirs)), optionsOf(pod)); diff != "" {
			t.Fatalf("seed %d: windowsOptions (-Kubernetes +Credence):\n%s", seed, cut(diff))
		}
	}
}

// marked is a pod with stop signals and user names in the same containers: in some, mostly in none.
func marked(r *rand.Rand) *corev1.Pod {
	mark := func(name string) corev1.Container {
		c := corev1.Container{Name: name}
		if r.Intn(8) == 0 {
			c.Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)}
			c.SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: new("user")}}
		}
		return c
	}
	pod := &corev1.Pod{}
	for i := range r.Intn(4) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, mark(fmt.Sprintf("init-%d", i)))
		pod.Spec.Containers = append(pod.Spec.Containers, mark(fmt.Sprintf("container-%d", i)))
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(mark(fmt.Sprintf("ephemeral-%d", i)))})
	}
	return pod
}

func containersOf(pod *corev1.Pod) map[string]corev1.Container {
	all := map[string]corev1.Container{}
	for _, c := range pod.Spec.InitContainers {
		all[c.Name] = c
	}
	for _, c := range pod.Spec.Containers {
		all[c.Name] = c
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all[c.Name] = corev1.Container(c.EphemeralContainerCommon)
	}
	return all
}

// usersOf returns which containers have a user name.
func usersOf(pod *corev1.Pod) map[string]bool {
	users := map[string]bool{}
	for name, c := range containersOf(pod) {
		users[name] = c.SecurityContext != nil && c.SecurityContext.WindowsOptions.RunAsUserName != nil
	}
	return users
}

func anyOf(users map[string]bool) bool {
	for _, has := range users {
		if has {
			return true
		}
	}
	return false
}

// optionsOf are the windowsOptions of a pod ("") and its containers.
func optionsOf(pod *corev1.Pod) map[string]*corev1.WindowsSecurityContextOptions {
	all := map[string]*corev1.WindowsSecurityContextOptions{}
	if pod.Spec.SecurityContext != nil {
		all[""] = pod.Spec.SecurityContext.WindowsOptions
	}
	for name, c := range containersOf(pod) {
		if c.SecurityContext != nil {
			all[name] = c.SecurityContext.WindowsOptions
		}
	}
	return all
}

func specOf(pod *corev1.Pod) *corev1.PodSpec {
	if pod == nil {
		return nil
	}
	return &pod.Spec
}

func internal(t *testing.T, pod *corev1.Pod) *core.Pod {
	t.Helper()
	if pod == nil {
		return nil
	}
	var converted core.Pod
	if err := kubecore.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &converted, nil); err != nil {
		t.Fatal(err)
	}
	return &converted
}

func external(t *testing.T, pod *core.Pod) *corev1.Pod {
	t.Helper()
	var converted corev1.Pod
	if err := kubecore.Convert_core_Pod_To_v1_Pod(pod, &converted, nil); err != nil {
		t.Fatal(err)
	}
	return &converted
}
