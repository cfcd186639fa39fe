package cri_test

//lint:file-ignore SA1019 Kubelets before 1.30 write the older field of AppArmor alone, and runtimes read it where the newer one is open.

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext/cri"
)

var seccompNode = cri.Node{SeccompFolder: "/var/lib/kubelet/seccomp"}

// The context of a message is read back, so that the same message can be made of it.
func TestMessagesAreReadBack(t *testing.T) {
	for name, c := range map[string]*corev1.SecurityContext{
		"empty": {},
		"strict": {
			RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities:    &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("web/strict.json")},
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("web")},
			SELinuxOptions:  &corev1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "s0:c1"},
		},
		"weak": {
			RunAsUser: new(int64(0)), Privileged: new(true), ProcMount: new(corev1.UnmaskedProcMount), AllowPrivilegeEscalation: new(true),
			Capabilities:    &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}},
			SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
		},
		"of the runtime": {
			SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
		},
	} {
		message := container(t, c, seccompNode)
		again := container(t, cri.LinuxContext(message, seccompNode), seccompNode)
		if message.GetApparmor() == nil { // which is the default of the runtime
			again.Apparmor = nil
		}
		if message.GetCapabilities() == nil {
			again.Capabilities = nil
		}
		if diff := cmp.Diff(message, again, protocmp.Transform()); diff != "" {
			t.Errorf("%s: the message and what is made of it (-want +got):\n%s", name, diff)
		}
	}
}

// A field that a message leaves open, or has in a form of older kubelets, counts as the runtime takes it.
func TestMessagesAsARuntimeTakesThem(t *testing.T) {
	for name, test := range map[string]struct {
		message *runtime.LinuxContainerSecurityContext
		holds   func(*corev1.SecurityContext) bool
	}{
		"a name is not a number":      {&runtime.LinuxContainerSecurityContext{RunAsUsername: "app"}, func(c *corev1.SecurityContext) bool { return c.RunAsUser == nil }},
		"no seccomp is unconfined":    {&runtime.LinuxContainerSecurityContext{}, func(c *corev1.SecurityContext) bool { return c.SeccompProfile.Type == "Unconfined" }},
		"no AppArmor is the default":  {&runtime.LinuxContainerSecurityContext{}, func(c *corev1.SecurityContext) bool { return c.AppArmorProfile.Type == "RuntimeDefault" }},
		"AppArmor of older kubelets":  {&runtime.LinuxContainerSecurityContext{ApparmorProfile: "unconfined"}, func(c *corev1.SecurityContext) bool { return c.AppArmorProfile.Type == "Unconfined" }},
		"a profile of older kubelets": {&runtime.LinuxContainerSecurityContext{ApparmorProfile: "localhost/web"}, func(c *corev1.SecurityContext) bool { return *c.AppArmorProfile.LocalhostProfile == "web" }},
		"a kind that is not known":    {&runtime.LinuxContainerSecurityContext{Seccomp: &runtime.SecurityProfile{ProfileType: 7}}, func(c *corev1.SecurityContext) bool { return c.SeccompProfile.Type == "Unconfined" }},
		"one path that is not hidden": {&runtime.LinuxContainerSecurityContext{MaskedPaths: []string{"/proc/kcore"}}, func(c *corev1.SecurityContext) bool { return *c.ProcMount == corev1.UnmaskedProcMount }},
		"ambient capabilities are added": {&runtime.LinuxContainerSecurityContext{Capabilities: &runtime.Capability{AddAmbientCapabilities: []string{"SYS_ADMIN"}}}, func(c *corev1.SecurityContext) bool {
			return slices.Equal(c.Capabilities.Add, []corev1.Capability{"SYS_ADMIN"})
		}},
		"seccomp of another folder":     {&runtime.LinuxContainerSecurityContext{Seccomp: &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: "/tmp/x"}}, func(c *corev1.SecurityContext) bool { return *c.SeccompProfile.LocalhostProfile == "/tmp/x" }},
		"runAsNonRoot is the kubelet's": {&runtime.LinuxContainerSecurityContext{}, func(c *corev1.SecurityContext) bool { return c.RunAsNonRoot == nil }},
		"no_new_privs is what counts":   {&runtime.LinuxContainerSecurityContext{NoNewPrivs: true}, func(c *corev1.SecurityContext) bool { return !*c.AllowPrivilegeEscalation }},
		"a root that is read-only":      {&runtime.LinuxContainerSecurityContext{ReadonlyRootfs: true}, func(c *corev1.SecurityContext) bool { return *c.ReadOnlyRootFilesystem }},
	} {
		if got := cri.LinuxContext(test.message, seccompNode); !test.holds(got) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Each field of containers that has an order of strictness can be set, and nothing else of the message is changed by it.
func TestEachFieldIsSet(t *testing.T) {
	strict := &corev1.SecurityContext{
		SELinuxOptions: &corev1.SELinuxOptions{Level: "s0"}, RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), Privileged: new(false),
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("web")},
		Capabilities:    &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
	}
	weak := func() *runtime.LinuxContainerSecurityContext {
		return &runtime.LinuxContainerSecurityContext{Privileged: true, RunAsUsername: "root", SupplementalGroups: []int64{7}}
	}
	from := container(t, strict, cri.Node{})
	fields := 0
	for _, o := range profile.Orders() {
		if o.Of != "container" || o.Field == "runAsNonRoot" {
			continue
		}
		fields++
		into := weak()
		if !cri.SetLinux(into, from, o.Field) {
			t.Errorf("%s is not set", o.Field)
			continue
		}
		if proto.Equal(into, weak()) {
			t.Errorf("%s: nothing is changed", o.Field)
		}
		if groups := into.GetSupplementalGroups(); len(groups) != 1 || into.GetPrivileged() != (o.Field != "privileged") {
			t.Errorf("%s: more than the field is changed: %v", o.Field, into)
		}
	}
	if fields < 10 {
		t.Errorf("%d fields only", fields)
	}
	if cri.SetLinux(weak(), from, "runAsNonRoot") {
		t.Error("runAsNonRoot is set, which no message has")
	}
}

// Paths of the node that a kubelet hides stay hidden, and a node without AppArmor can start a container that is no longer free of it.
func TestWhatFieldsKeep(t *testing.T) {
	from := container(t, &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}}, cri.Node{})
	into := &runtime.LinuxContainerSecurityContext{MaskedPaths: []string{"/of/the/node"}, Apparmor: &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Unconfined}, ApparmorProfile: "unconfined"}
	cri.SetLinux(into, from, "procMount")
	cri.SetLinux(into, from, "appArmorProfile")
	if !slices.Contains(into.GetMaskedPaths(), "/of/the/node") || !slices.Contains(into.GetMaskedPaths(), "/proc/kcore") {
		t.Errorf("masked paths are %q", into.GetMaskedPaths())
	}
	if into.GetApparmor() != nil || into.GetApparmorProfile() != "" {
		t.Errorf("AppArmor is %v", into)
	}
}
