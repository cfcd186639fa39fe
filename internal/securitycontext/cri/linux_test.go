package cri_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

func container(t *testing.T, effective *corev1.SecurityContext, image cri.ImageUser, node cri.Node) *runtime.LinuxContainerSecurityContext {
	t.Helper()
	message, err := cri.LinuxContainer(&corev1.PodSpec{}, cri.Container{Name: "web", Effective: effective, Image: image}, node)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestLinuxContainerUser(t *testing.T) {
	for name, test := range map[string]struct {
		asked *int64
		image cri.ImageUser
		uid   *int64
		user  string
	}{
		"root of an image without one": {uid: new(int64(0))},
		"number of the image":          {image: cri.ImageUser{UID: new(int64(1000))}, uid: new(int64(1000))},
		"word of the image":            {image: cri.ImageUser{Name: "app"}, user: "app"},
		"asked for":                    {asked: new(int64(2000)), image: cri.ImageUser{Name: "app"}, uid: new(int64(2000))},
		"root asked for":               {asked: new(int64(0)), image: cri.ImageUser{UID: new(int64(1000))}, uid: new(int64(0))},
	} {
		got := container(t, &corev1.SecurityContext{RunAsUser: test.asked}, test.image, cri.Node{})
		if got.GetRunAsUsername() != test.user || (got.GetRunAsUser() == nil) != (test.uid == nil) || test.uid != nil && got.GetRunAsUser().GetValue() != *test.uid {
			t.Errorf("%s: user %v, %q", name, got.GetRunAsUser(), got.GetRunAsUsername())
		}
	}
}

func TestNoNewPrivileges(t *testing.T) {
	for name, test := range map[string]struct {
		escalation *bool
		want       bool
	}{"unset": {}, "allowed": {escalation: new(true)}, "not allowed": {escalation: new(false), want: true}} {
		if got := container(t, &corev1.SecurityContext{AllowPrivilegeEscalation: test.escalation}, cri.ImageUser{}, cri.Node{}); got.GetNoNewPrivs() != test.want {
			t.Errorf("%s: %v", name, got.GetNoNewPrivs())
		}
	}
}

func TestProcMount(t *testing.T) {
	node := cri.Node{MaskedPaths: []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}}
	for name, mount := range map[string]*corev1.ProcMountType{"unset": nil, "default": new(corev1.DefaultProcMount)} {
		got := container(t, &corev1.SecurityContext{ProcMount: mount}, cri.ImageUser{}, node)
		if masked := got.GetMaskedPaths(); len(masked) != 13 || masked[12] != node.MaskedPaths[0] {
			t.Errorf("%s: masked paths %q, want those of everywhere and of the node", name, masked)
		}
		if readonly := got.GetReadonlyPaths(); len(readonly) != 5 {
			t.Errorf("%s: read-only paths %q", name, readonly)
		}
	}
	got := container(t, &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}, cri.ImageUser{}, node)
	if len(got.GetMaskedPaths())+len(got.GetReadonlyPaths()) > 0 {
		t.Errorf("unmasked: %q, %q", got.GetMaskedPaths(), got.GetReadonlyPaths())
	}
}

func TestProfiles(t *testing.T) {
	const folder = "/var/lib/kubelet/seccomp"
	profile := func(kind runtime.SecurityProfile_ProfileType, ref string) *runtime.SecurityProfile {
		return &runtime.SecurityProfile{ProfileType: kind, LocalhostRef: ref}
	}
	const (
		unconfined = runtime.SecurityProfile_Unconfined
		standard   = runtime.SecurityProfile_RuntimeDefault
		localhost  = runtime.SecurityProfile_Localhost
	)
	for name, test := range map[string]struct {
		seccomp  *corev1.SeccompProfile
		appArmor *corev1.AppArmorProfile
		standard bool // the node's default
		want     [2]*runtime.SecurityProfile
		refused  string
	}{
		"none":                   {want: [2]*runtime.SecurityProfile{profile(unconfined, ""), nil}},
		"none, on a strict node": {standard: true, want: [2]*runtime.SecurityProfile{profile(standard, ""), nil}},
		"unconfined, on a strict node": {standard: true, seccomp: &corev1.SeccompProfile{Type: "Unconfined"}, appArmor: &corev1.AppArmorProfile{Type: "Unconfined"},
			want: [2]*runtime.SecurityProfile{profile(unconfined, ""), profile(unconfined, "")}},
		"of the runtime": {seccomp: &corev1.SeccompProfile{Type: "RuntimeDefault"}, appArmor: &corev1.AppArmorProfile{Type: "RuntimeDefault"},
			want: [2]*runtime.SecurityProfile{profile(standard, ""), profile(standard, "")}},
		"of the node": {seccomp: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("web/strict.json")}, appArmor: &corev1.AppArmorProfile{Type: "Localhost", LocalhostProfile: new("web")},
			want: [2]*runtime.SecurityProfile{profile(localhost, folder+"/web/strict.json"), profile(localhost, "web")}},
		"seccomp without a file":     {seccomp: &corev1.SeccompProfile{Type: "Localhost"}, refused: "set localhostProfile"},
		"seccomp with an empty file": {seccomp: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("")}, refused: "set localhostProfile"},
		"seccomp out of its folder":  {seccomp: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("web/../../x")}, refused: "set localhostProfile"},
		"seccomp by absolute path":   {seccomp: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("/etc/x")}, refused: "set localhostProfile"},
		"seccomp of another type":    {seccomp: &corev1.SeccompProfile{Type: "Lax"}, refused: `type "Lax" of seccompProfile`},
		"apparmor without a name":    {appArmor: &corev1.AppArmorProfile{Type: "Localhost"}, refused: "set localhostProfile"},
		"apparmor of another type":   {appArmor: &corev1.AppArmorProfile{Type: "Lax"}, refused: `type "Lax" of appArmorProfile`},
	} {
		t.Run(name, func(t *testing.T) {
			effective := &corev1.SecurityContext{SeccompProfile: test.seccomp, AppArmorProfile: test.appArmor}
			got, err := cri.LinuxContainer(&corev1.PodSpec{}, cri.Container{Name: "web", Effective: effective}, cri.Node{SeccompFolder: folder, SeccompDefault: test.standard})
			mustRefuse(t, got == nil, err, test.refused, `container "web"`)
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, [2]*runtime.SecurityProfile{got.GetSeccomp(), got.GetApparmor()}, protocmp.Transform()); diff != "" {
				t.Errorf("seccomp and AppArmor (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	const (
		own  = runtime.NamespaceMode_CONTAINER
		pod  = runtime.NamespaceMode_POD
		node = runtime.NamespaceMode_NODE
	)
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		want *runtime.NamespaceOption
	}{
		"of its own":        {want: &runtime.NamespaceOption{Pid: own}},
		"shared processes":  {pod: corev1.PodSpec{ShareProcessNamespace: new(true)}, want: &runtime.NamespaceOption{Pid: pod}},
		"set to not shared": {pod: corev1.PodSpec{ShareProcessNamespace: new(false)}, want: &runtime.NamespaceOption{Pid: own}},
		"of the host": {pod: corev1.PodSpec{HostPID: true, HostIPC: true, HostNetwork: true},
			want: &runtime.NamespaceOption{Pid: node, Ipc: node, Network: node}},
	} {
		container, err := cri.LinuxContainer(&test.pod, cri.Container{Name: "web"}, cri.Node{})
		if err != nil {
			t.Fatal(err)
		}
		sandbox, err := cri.LinuxSandbox(&test.pod, cri.Node{})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*runtime.NamespaceOption{container.GetNamespaceOptions(), sandbox.GetNamespaceOptions()} {
			if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestSupplementalGroups(t *testing.T) {
	for name, test := range map[string]struct {
		policy  *corev1.SupplementalGroupsPolicy
		want    runtime.SupplementalGroupsPolicy
		refused string
	}{
		"unset":   {want: runtime.SupplementalGroupsPolicy_Merge},
		"merge":   {policy: new(corev1.SupplementalGroupsPolicyMerge), want: runtime.SupplementalGroupsPolicy_Merge},
		"strict":  {policy: new(corev1.SupplementalGroupsPolicyStrict), want: runtime.SupplementalGroupsPolicy_Strict},
		"unknown": {policy: new(corev1.SupplementalGroupsPolicy("Lax")), refused: `supplementalGroupsPolicy "Lax"`},
	} {
		pod := &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(1)), SupplementalGroups: []int64{2, 3}, SupplementalGroupsPolicy: test.policy}}
		node := cri.Node{Groups: []int64{4}}
		container, err := cri.LinuxContainer(pod, cri.Container{Name: "web"}, node)
		mustRefuse(t, container == nil, err, test.refused)
		sandbox, sandboxErr := cri.LinuxSandbox(pod, node)
		mustRefuse(t, sandbox == nil, sandboxErr, test.refused)
		if err != nil || sandboxErr != nil {
			continue
		}
		for _, got := range [][]int64{container.GetSupplementalGroups(), sandbox.GetSupplementalGroups()} {
			if diff := cmp.Diff([]int64{1, 2, 3, 4}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if container.GetSupplementalGroupsPolicy() != test.want || sandbox.GetSupplementalGroupsPolicy() != test.want {
			t.Errorf("%s: policies %v, %v", name, container.GetSupplementalGroupsPolicy(), sandbox.GetSupplementalGroupsPolicy())
		}
		if container.GetSupplementalGroups()[1] = 9; pod.SecurityContext.SupplementalGroups[0] != 2 {
			t.Error("the message shares its groups with the pod")
		}
	}
}

func TestPrivilegedSandbox(t *testing.T) {
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		want bool
	}{
		"none":      {pod: corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: new(false)}}, {}}}},
		"init":      {pod: corev1.PodSpec{InitContainers: []corev1.Container{{SecurityContext: privileged}}}, want: true},
		"regular":   {pod: corev1.PodSpec{Containers: []corev1.Container{{}, {SecurityContext: privileged}}}, want: true},
		"ephemeral": {pod: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: privileged}}}}, want: true},
	} {
		if sandbox, err := cri.LinuxSandbox(&test.pod, cri.Node{}); err != nil || sandbox.GetPrivileged() != test.want {
			t.Errorf("%s: %v, %v, want %v", name, sandbox.GetPrivileged(), err, test.want)
		}
	}
}
