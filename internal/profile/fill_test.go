package profile_test

import (
	"cmp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/target"
)

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}, Containers: containers}}
}

func profileOf(c accounts.SecurityContexts) profile.Profile {
	return profile.Resolve(&accounts.ServiceAccountProfile{Spec: accounts.ServiceAccountProfileSpec{SecurityContext: &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, SecurityContexts: c}}}, nil)
}

// A container that another webhook adds between two passes gets the same as those before it. A value that is the author's counts for all.
func TestContainersThatAreAddedLater(t *testing.T) {
	p := profileOf(accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsUser: new(int64(7))}, Container: &corev1.SecurityContext{RunAsUser: new(int64(8))}})
	first := p.Fill(profile.Pod{Pod: podOf(corev1.Container{Name: "a"})})
	first.Pod.Spec.Containers = append(first.Pod.Spec.Containers, corev1.Container{Name: "sidecar"})
	second := p.Fill(profile.Pod{Pod: first.Pod})
	for _, c := range second.Pod.Spec.Containers {
		if c.SecurityContext == nil || *c.SecurityContext.RunAsUser != 8 {
			t.Errorf("%s has %+v", c.Name, c.SecurityContext)
		}
	}
	if want := []string{"spec.containers[sidecar].securityContext.runAsUser"}; len(second.Fields) != 1 || second.Fields[0].Path != want[0] {
		t.Errorf("filled in %v, want %v", second.Fields, want)
	}
	own := podOf(corev1.Container{Name: "a"})
	own.Spec.SecurityContext.RunAsUser = new(int64(7))
	if filled := p.Fill(profile.Pod{Pod: own}); len(filled.Patch) > 0 {
		t.Errorf("the author's value was replaced: %+v", filled.Fields)
	}
}

// A profile of both operating systems gives each pod what its system has.
func TestOperatingSystems(t *testing.T) {
	p := profileOf(accounts.SecurityContexts{
		Pod:       &corev1.PodSecurityContext{RunAsUser: new(int64(7)), RunAsNonRoot: new(true)},
		Container: &corev1.SecurityContext{Privileged: new(false)},
		Windows:   &corev1.WindowsSecurityContextOptions{HostProcess: new(false), RunAsUserName: new("ContainerUser")},
	})
	for os, want := range map[target.OS][]string{
		"":             {"spec.os.name", "spec.securityContext.runAsUser", "spec.securityContext.runAsNonRoot", "spec.containers[a].securityContext.privileged"},
		target.Linux:   {"spec.securityContext.runAsUser", "spec.securityContext.runAsNonRoot", "spec.containers[a].securityContext.privileged"},
		target.Windows: {"spec.securityContext.runAsNonRoot", "spec.securityContext.windowsOptions.runAsUserName", "spec.securityContext.windowsOptions.hostProcess"},
	} {
		filled := p.Fill(profile.Pod{Pod: podOf(corev1.Container{Name: "a"}), OS: os})
		var paths []string
		for _, f := range filled.Fields {
			paths = append(paths, f.Path)
		}
		if !slices.Equal(paths, want) {
			t.Errorf("%q: filled in %v, want %v", os, paths, want)
		}
	}
	// hostProcess must be the same in all containers: one that has it leaves it open nowhere. It is refused, where the pod may be one of Windows.
	host := podOf(corev1.Container{Name: "a", SecurityContext: &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}})
	for os, refused := range map[target.OS]bool{"": true, target.Windows: true, target.Linux: false} {
		filled := p.Fill(profile.Pod{Pod: host, OS: os})
		denial := p.Refuse(profile.Pod{Pod: filled.Pod, OS: os})
		if w := filled.Pod.Spec.SecurityContext.WindowsOptions; w != nil && w.HostProcess != nil || (denial != nil) != refused {
			t.Errorf("%q: %+v, %+v, want a refusal: %t", os, w, denial, refused)
		}
	}
}

// A container of kind hostProcess is root of its node: a profile that enforces anything refuses it, unless it has the field.
func TestHostProcessNeedsTheField(t *testing.T) {
	options := func(host *bool) *corev1.WindowsSecurityContextOptions {
		return &corev1.WindowsSecurityContextOptions{HostProcess: host}
	}
	ofContainer := podOf(corev1.Container{Name: "a", SecurityContext: &corev1.SecurityContext{WindowsOptions: options(new(true))}})
	ofPod := podOf(corev1.Container{Name: "a"})
	ofPod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: options(new(true))}
	for name, test := range map[string]struct {
		contexts accounts.SecurityContexts
		refused  bool
	}{
		"no windows":        {accounts.SecurityContexts{Container: &corev1.SecurityContext{Privileged: new(false)}}, true},
		"another field":     {accounts.SecurityContexts{Windows: &corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerUser")}}, true},
		"the field":         {accounts.SecurityContexts{Windows: options(new(true))}, false},
		"the field, false":  {accounts.SecurityContexts{Windows: options(new(false))}, true},
		"nothing is wanted": {accounts.SecurityContexts{}, true},
	} {
		for field, pod := range map[string]*corev1.Pod{"spec.containers[0].securityContext.windowsOptions.hostProcess": ofContainer, "spec.securityContext.windowsOptions.hostProcess": ofPod} {
			for _, os := range []target.OS{"", target.Windows} {
				pod := pod.DeepCopy()
				if test.contexts.Windows != nil && test.contexts.Windows.RunAsUserName != nil {
					pod.Spec.SecurityContext = cmp.Or(pod.Spec.SecurityContext, &corev1.PodSecurityContext{})
					pod.Spec.SecurityContext.WindowsOptions = cmp.Or(pod.Spec.SecurityContext.WindowsOptions, options(nil))
					pod.Spec.SecurityContext.WindowsOptions.RunAsUserName = new("ContainerUser")
				}
				pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} // so that none is missing
				denial := profileOf(test.contexts).Refuse(profile.Pod{Pod: pod, OS: os})
				if (denial != nil) != test.refused || test.refused && denial.Field != field {
					t.Errorf("%s, %q, %s: %+v, want a refusal: %t", name, os, field, denial, test.refused)
				}
			}
		}
	}
}

// The API server writes annotations from before Kubernetes 1.30 into containers after the webhooks: their values count as the containers' own.
func TestAppArmorOfAnnotations(t *testing.T) {
	runtimeDefault := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	p := profileOf(accounts.SecurityContexts{Container: &corev1.SecurityContext{AppArmorProfile: runtimeDefault}})
	pod := podOf(corev1.Container{Name: "a"}, corev1.Container{Name: "b"})
	pod.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}
	filled := p.Fill(profile.Pod{Pod: pod})
	if len(filled.Fields) != 1 || filled.Fields[0].Path != "spec.containers[b].securityContext.appArmorProfile" {
		t.Errorf("filled in %v", filled.Fields)
	}
	if denial := p.Refuse(profile.Pod{Pod: filled.Pod}); denial == nil || denial.Field != "spec.containers[0].securityContext.appArmorProfile" || len(denial.Others) > 0 {
		t.Errorf("refused with %v", denial)
	}
	pod.Annotations["container.apparmor.security.beta.kubernetes.io/a"] = "runtime/default"
	filled = p.Fill(profile.Pod{Pod: pod})
	if denial := p.Refuse(profile.Pod{Pod: filled.Pod}); denial != nil {
		t.Errorf("refused with %v", denial)
	}
	// An annotation that the API server adds beside a field is not the author's.
	filled.Pod.Annotations["container.apparmor.security.beta.kubernetes.io/b"] = "runtime/default"
	if again := p.Fill(profile.Pod{Pod: profile.Requested(filled.Pod)}); len(again.Fields) != 1 {
		t.Errorf("decided on again: filled in %v", again.Fields)
	}
}

// A pod that counts as one of Linux cannot be had by Windows where the profile refuses something of Windows: the kubelet refuses another system.
func TestPodsThatCouldRunOnWindows(t *testing.T) {
	p := profileOf(accounts.SecurityContexts{Windows: &corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerUser")}})
	filled := p.Fill(profile.Pod{Pod: podOf(corev1.Container{Name: "a"})})
	if spec := patched(t, podOf(corev1.Container{Name: "a"}), filled).Spec; spec.OS == nil || spec.OS.Name != corev1.Linux {
		t.Errorf("the system is %v", spec.OS)
	}
	if requested := profile.Requested(filled.Pod); requested.Spec.OS != nil {
		t.Errorf("the author's system is %v", requested.Spec.OS)
	}
	if denial := p.Refuse(profile.Pod{Pod: filled.Pod, OS: target.Linux}); denial != nil {
		t.Errorf("refused with %v", denial)
	}
	options := podOf(corev1.Container{Name: "a", SecurityContext: &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerUser")}}})
	if denial := p.Refuse(profile.Pod{Pod: p.Fill(profile.Pod{Pod: options}).Pod}); denial == nil || denial.Field != "spec.os.name" {
		t.Errorf("refused with %v", denial)
	}
}

// A token that the API server has mounted is taken off, and nothing else.
func TestAutomountedTokens(t *testing.T) {
	token := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}
	}
	pod := podOf(corev1.Container{Name: "a", VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x", MountPath: "/t"}, {Name: "own", MountPath: "/o"}}})
	pod.Spec.InitContainers = []corev1.Container{{Name: "i", VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/o"}, {Name: "kube-api-access-x", MountPath: "/t"}}}}
	pod.Spec.Volumes = []corev1.Volume{token("own"), token("kube-api-access-x")}
	p := profile.Resolve(&accounts.ServiceAccountProfile{Spec: accounts.ServiceAccountProfileSpec{AutomountToken: new(false)}}, nil)
	filled := p.Fill(profile.Pod{Pod: pod})
	spec := patched(t, pod, filled).Spec
	if len(spec.Volumes) != 1 || spec.Volumes[0].Name != "own" || len(spec.Containers[0].VolumeMounts) != 1 || len(spec.InitContainers[0].VolumeMounts) != 1 || *spec.AutomountServiceAccountToken {
		t.Errorf("the pod has %s", text(t, spec))
	}
	pod.Spec.AutomountServiceAccountToken = new(true)
	if filled := p.Fill(profile.Pod{Pod: pod}); len(filled.Patch) > 0 {
		t.Errorf("the author's choice was replaced: %+v", filled.Patch)
	}
}
