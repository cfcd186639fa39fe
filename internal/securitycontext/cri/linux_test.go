package cri_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
	"github.com/credence-id/credence/test/testkit"
)

func container(t *testing.T, c *corev1.SecurityContext, node cri.Node) *runtime.LinuxContainerSecurityContext {
	t.Helper()
	message := testkit.Need(cri.LinuxContainer(c, node))(t)
	return message
}

func TestNoNewPrivileges(t *testing.T) {
	for name, test := range map[string]struct {
		escalation *bool
		want       bool
	}{"unset": {}, "allowed": {escalation: new(true)}, "not allowed": {escalation: new(false), want: true}} {
		if got := container(t, &corev1.SecurityContext{AllowPrivilegeEscalation: test.escalation}, cri.Node{}); got.GetNoNewPrivs() != test.want {
			t.Errorf("%s: %v", name, got.GetNoNewPrivs())
		}
	}
}

func TestProcMount(t *testing.T) {
	for name, mount := range map[string]*corev1.ProcMountType{"unset": nil, "default": new(corev1.DefaultProcMount)} {
		got := container(t, &corev1.SecurityContext{ProcMount: mount}, cri.Node{})
		if masked := got.GetMaskedPaths(); len(masked) != 12 {
			t.Errorf("%s: masked paths %q", name, masked)
		}
		if readonly := got.GetReadonlyPaths(); len(readonly) != 5 {
			t.Errorf("%s: read-only paths %q", name, readonly)
		}
	}
	got := container(t, &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}, cri.Node{})
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
		want     [2]*runtime.SecurityProfile
		refused  string
	}{
		"none": {want: [2]*runtime.SecurityProfile{profile(unconfined, ""), nil}},
		"unconfined": {seccomp: &corev1.SeccompProfile{Type: "Unconfined"}, appArmor: &corev1.AppArmorProfile{Type: "Unconfined"},
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
			got, err := cri.LinuxContainer(&corev1.SecurityContext{SeccompProfile: test.seccomp, AppArmorProfile: test.appArmor}, cri.Node{SeccompFolder: folder})
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || got != nil {
					t.Errorf("got %v, %v, want no message, and an error with %q", got, err, test.refused)
				}
				return
			}
			testkit.Must(t, err)
			if diff := cmp.Diff(test.want, [2]*runtime.SecurityProfile{got.GetSeccomp(), got.GetApparmor()}, protocmp.Transform()); diff != "" {
				t.Errorf("seccomp and AppArmor (-want +got):\n%s", diff)
			}
		})
	}
}
