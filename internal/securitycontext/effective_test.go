package securitycontext_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext"
)

func windows(o corev1.WindowsSecurityContextOptions) *corev1.WindowsSecurityContextOptions { return &o }

func TestEffective(t *testing.T) {
	ofPod := windows(corev1.WindowsSecurityContextOptions{
		GMSACredentialSpecName: new("webapp1-credspec"), GMSACredentialSpec: new(`{"of":"pod"}`),
		RunAsUserName: new(`NT AUTHORITY\NETWORK SERVICE`), HostProcess: new(false),
	})
	for name, tt := range map[string]struct {
		pod, container, want *corev1.WindowsSecurityContextOptions
	}{
		"neither":                    {nil, nil, nil},
		"pod only":                   {ofPod, nil, ofPod},
		"container empty":            {ofPod, windows(corev1.WindowsSecurityContextOptions{}), ofPod},
		"container empty, pod none":  {nil, windows(corev1.WindowsSecurityContextOptions{}), windows(corev1.WindowsSecurityContextOptions{})},
		"another user for container": {ofPod, windows(corev1.WindowsSecurityContextOptions{RunAsUserName: new("ContainerUser")}), windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("webapp1-credspec"), GMSACredentialSpec: new(`{"of":"pod"}`), RunAsUserName: new("ContainerUser"), HostProcess: new(false)})},
		"host process for container": {ofPod, windows(corev1.WindowsSecurityContextOptions{HostProcess: new(true)}), windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("webapp1-credspec"), GMSACredentialSpec: new(`{"of":"pod"}`), RunAsUserName: new(`NT AUTHORITY\NETWORK SERVICE`), HostProcess: new(true)})},
		"a name takes its contents":  {ofPod, windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("eventlogger-credspec")}), windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("eventlogger-credspec"), RunAsUserName: new(`NT AUTHORITY\NETWORK SERVICE`), HostProcess: new(false)})},
		"contents take their name":   {ofPod, windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new(`{"of":"container"}`)}), windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new(`{"of":"container"}`), RunAsUserName: new(`NT AUTHORITY\NETWORK SERVICE`), HostProcess: new(false)})},
		"an empty name is a name":    {ofPod, windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new("")}), windows(corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: new(""), RunAsUserName: new(`NT AUTHORITY\NETWORK SERVICE`), HostProcess: new(false)})},
	} {
		t.Run(name, func(t *testing.T) {
			got := securitycontext.Effective(&corev1.PodSecurityContext{WindowsOptions: tt.pod}, &corev1.SecurityContext{WindowsOptions: tt.container})
			if diff := cmp.Diff(&corev1.SecurityContext{WindowsOptions: tt.want}, got); diff != "" {
				t.Errorf("effective context (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffectiveOnLinux(t *testing.T) {
	pod := &corev1.PodSecurityContext{
		SELinuxOptions:  &corev1.SELinuxOptions{Level: "s0:c1", Role: "role"},
		RunAsUser:       new(int64(1)),
		RunAsGroup:      new(int64(2)),
		RunAsNonRoot:    new(true),
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
		FSGroup:         new(int64(3)),
	}
	container := &corev1.SecurityContext{
		SELinuxOptions:         &corev1.SELinuxOptions{Level: "s0:c2"},
		RunAsUser:              new(int64(0)),
		RunAsNonRoot:           new(false),
		Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem: new(true),
		AppArmorProfile:        &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("own")},
	}
	want := &corev1.SecurityContext{
		SELinuxOptions:         &corev1.SELinuxOptions{Level: "s0:c2"},
		RunAsUser:              new(int64(0)),
		RunAsGroup:             new(int64(2)),
		RunAsNonRoot:           new(false),
		Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem: new(true),
		SeccompProfile:         &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile:        &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("own")},
	}
	if diff := cmp.Diff(want, securitycontext.Effective(pod, container)); diff != "" {
		t.Errorf("effective context (-want +got):\n%s", diff)
	}
}

func TestEffectiveOfNothing(t *testing.T) {
	if diff := cmp.Diff(&corev1.SecurityContext{}, securitycontext.Effective(nil, nil)); diff != "" {
		t.Errorf("effective context (-want +got):\n%s", diff)
	}
}

// Whatever a container sets is in the result as it is, fields that no rule here names included.
func TestContainerWins(t *testing.T) {
	generated(t, 500, func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
		got := securitycontext.Effective(pod, container)
		if container == nil {
			return
		}
		wins(t, reflect.ValueOf(*container), reflect.ValueOf(*got))
		if pod == nil {
			if diff := cmp.Diff(container, got); diff != "" {
				t.Errorf("a container without a pod is not what it was (-want +got):\n%s", diff)
			}
		}
	})
}

func wins(t *testing.T, container, got reflect.Value) {
	t.Helper()
	for i := range container.NumField() {
		name, of := container.Type().Field(i).Name, container.Field(i)
		switch {
		case of.IsNil():
		case name == "WindowsOptions":
			if got.Field(i).IsNil() {
				t.Fatal("windowsOptions are gone")
			}
			wins(t, of.Elem(), got.Field(i).Elem())
		default:
			if diff := cmp.Diff(of.Interface(), got.Field(i).Interface()); diff != "" {
				t.Errorf("%s is not the container's (-want +got):\n%s", name, diff)
			}
		}
	}
}

// Fields that a container does not set are the pod's, or unset.
func TestPodFillsTheRest(t *testing.T) {
	generated(t, 500, func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
		got := securitycontext.Effective(pod, container)
		if pod == nil {
			return
		}
		if container == nil {
			container = &corev1.SecurityContext{}
		}
		of := reflect.ValueOf(*pod)
		for i := range of.NumField() {
			name := of.Type().Field(i).Name
			inContainer := reflect.ValueOf(*container).FieldByName(name)
			if !inContainer.IsValid() || name == "WindowsOptions" || !inContainer.IsNil() {
				continue
			}
			if diff := cmp.Diff(of.Field(i).Interface(), reflect.ValueOf(*got).FieldByName(name).Interface()); diff != "" {
				t.Errorf("%s is not the pod's (-want +got):\n%s", name, diff)
			}
		}
	})
}

// A name and contents come from one place, always.
func TestPairRule(t *testing.T) {
	type pair struct{ name, contents *string }
	of := func(o *corev1.WindowsSecurityContextOptions) pair {
		if o == nil {
			return pair{}
		}
		return pair{o.GMSACredentialSpecName, o.GMSACredentialSpec}
	}
	generated(t, 1000, func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
		var want pair
		if container != nil {
			want = of(container.WindowsOptions)
		}
		if want == (pair{}) && pod != nil {
			want = of(pod.WindowsOptions)
		}
		got := of(securitycontext.Effective(pod, container).WindowsOptions)
		if !cmp.Equal(want.name, got.name) || !cmp.Equal(want.contents, got.contents) {
			t.Errorf("pod %+v, container %+v: the pair is %+v", pod, container, got)
		}
	})
}

// An effective context is its own effective context, with and without the pod.
func TestIdempotence(t *testing.T) {
	generated(t, 500, func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
		once := securitycontext.Effective(pod, container)
		for _, again := range []*corev1.SecurityContext{securitycontext.Effective(nil, once), securitycontext.Effective(pod, once)} {
			if diff := cmp.Diff(once, again); diff != "" {
				t.Errorf("a second time changes something (-once +twice):\n%s", diff)
			}
		}
	})
}

// Nothing that is done to the result reaches the pod.
func TestNoAliasing(t *testing.T) {
	generated(t, 500, func(t *testing.T, pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
		podBefore, containerBefore := pod.DeepCopy(), container.DeepCopy()
		got := securitycontext.Effective(pod, container)
		if diff := cmp.Diff(podBefore, pod) + cmp.Diff(containerBefore, container); diff != "" {
			t.Errorf("Effective changed its inputs (-before +after):\n%s", diff)
		}
		scramble(reflect.ValueOf(got))
		if diff := cmp.Diff(podBefore, pod) + cmp.Diff(containerBefore, container); diff != "" {
			t.Errorf("a change of the result changed the inputs (-before +after):\n%s", diff)
		}
	})
}
