package cri

//lint:file-ignore SA1019 Kubelets before 1.30 write the older field of AppArmor alone, and runtimes read it where the newer one is open.

import (
	"slices"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SetLinux gives a message a field of another one that LinuxContainer made; the name is that of the field in a security context. Everything else of
// the message stays, what this version does not know included. It reports whether there is such a field.
func SetLinux(into, from *runtime.LinuxContainerSecurityContext, field string) bool {
	set, found := linuxFields[field]
	if found {
		set(into, from)
	}
	return found
}

var linuxFields = map[string]func(into, from *runtime.LinuxContainerSecurityContext){
	"seLinuxOptions": func(into, from *runtime.LinuxContainerSecurityContext) {
		into.SelinuxOptions = from.GetSelinuxOptions()
	},
	// A runtime refuses a number beside a name.
	"runAsUser": func(into, from *runtime.LinuxContainerSecurityContext) {
		into.RunAsUser, into.RunAsUsername = from.GetRunAsUser(), ""
	},
	"runAsGroup":     func(into, from *runtime.LinuxContainerSecurityContext) { into.RunAsGroup = from.GetRunAsGroup() },
	"seccompProfile": func(into, from *runtime.LinuxContainerSecurityContext) { into.Seccomp = from.GetSeccomp() },
	// The default of the runtime is what it takes without a profile, also on a node that has no AppArmor.
	"appArmorProfile": func(into, from *runtime.LinuxContainerSecurityContext) {
		into.Apparmor, into.ApparmorProfile = from.GetApparmor(), ""
		if from.GetApparmor().GetProfileType() == runtime.SecurityProfile_RuntimeDefault {
			into.Apparmor = nil
		}
	},
	"capabilities":             func(into, from *runtime.LinuxContainerSecurityContext) { into.Capabilities = from.GetCapabilities() },
	"privileged":               func(into, from *runtime.LinuxContainerSecurityContext) { into.Privileged = from.GetPrivileged() },
	"allowPrivilegeEscalation": func(into, from *runtime.LinuxContainerSecurityContext) { into.NoNewPrivs = from.GetNoNewPrivs() },
	"readOnlyRootFilesystem": func(into, from *runtime.LinuxContainerSecurityContext) {
		into.ReadonlyRootfs = from.GetReadonlyRootfs()
	},
	// Paths of the node itself are in the message that the kubelet made.
	"procMount": func(into, from *runtime.LinuxContainerSecurityContext) {
		into.MaskedPaths = union(into.GetMaskedPaths(), from.GetMaskedPaths())
		into.ReadonlyPaths = union(into.GetReadonlyPaths(), from.GetReadonlyPaths())
	},
}

func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
