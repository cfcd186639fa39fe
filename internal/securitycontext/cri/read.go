package cri

//lint:file-ignore SA1019 Kubelets before 1.30 write the older field of AppArmor alone, and runtimes read it where the newer one is open.

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LinuxContext reads the security context out of the message for a container of a Linux pod, as the runtime takes it. Messages do not distinguish a
// field that was left open from its default, so that most fields are set. A user by a name is left open, as the image alone has the
// number; so is runAsNonRoot, which a runtime never sees.
func LinuxContext(m *runtime.LinuxContainerSecurityContext, node Node) *corev1.SecurityContext {
	c := &corev1.SecurityContext{
		Capabilities: &corev1.Capabilities{
			Add:  capabilityNames(m.GetCapabilities().GetAddCapabilities(), m.GetCapabilities().GetAddAmbientCapabilities()),
			Drop: capabilityNames(m.GetCapabilities().GetDropCapabilities()),
		},
		Privileged:               new(m.GetPrivileged()),
		RunAsUser:                optional(m.GetRunAsUser()),
		RunAsGroup:               optional(m.GetRunAsGroup()),
		ReadOnlyRootFilesystem:   new(m.GetReadonlyRootfs()),
		AllowPrivilegeEscalation: new(!m.GetNoNewPrivs()),
		ProcMount:                new(procMount(m)),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		AppArmorProfile:          appArmorOf(m),
	}
	if o := m.GetSelinuxOptions(); o != nil {
		c.SELinuxOptions = &corev1.SELinuxOptions{User: o.GetUser(), Role: o.GetRole(), Type: o.GetType(), Level: o.GetLevel()}
	}
	if s := m.GetSeccomp(); s != nil {
		kind, file := profileOf(s)
		if file != nil {
			file = new(strings.TrimPrefix(*file, node.SeccompFolder+"/"))
		}
		c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileType(kind), LocalhostProfile: file}
	}
	return c
}

func optional(n *runtime.Int64Value) *int64 {
	if n == nil {
		return nil
	}
	return new(n.GetValue())
}

func capabilityNames(lists ...[]string) []corev1.Capability {
	var names []corev1.Capability
	for _, name := range slices.Concat(lists...) {
		names = append(names, corev1.Capability(name))
	}
	return names
}

// procMount is Default where all paths are hidden that every node hides.
func procMount(m *runtime.LinuxContainerSecurityContext) corev1.ProcMountType {
	if lacks(m.GetMaskedPaths(), maskedPaths(nil)) || lacks(m.GetReadonlyPaths(), readonlyPaths(nil)) {
		return corev1.UnmaskedProcMount
	}
	return corev1.DefaultProcMount
}

func lacks(has, wants []string) bool {
	return slices.ContainsFunc(wants, func(path string) bool { return !slices.Contains(has, path) })
}

// The names of kinds are those of seccomp and of AppArmor alike. A kind that is not known counts as the weakest.
func profileOf(p *runtime.SecurityProfile) (kind string, file *string) {
	switch p.GetProfileType() {
	case runtime.SecurityProfile_RuntimeDefault:
		return string(corev1.SeccompProfileTypeRuntimeDefault), nil
	case runtime.SecurityProfile_Localhost:
		return string(corev1.SeccompProfileTypeLocalhost), new(p.GetLocalhostRef())
	}
	return string(corev1.SeccompProfileTypeUnconfined), nil
}

// appArmorOf is the runtime's default where the message has no profile. Kubelets before 1.30 have it in the older field alone.
func appArmorOf(m *runtime.LinuxContainerSecurityContext) *corev1.AppArmorProfile {
	if p := m.GetApparmor(); p != nil {
		kind, name := profileOf(p)
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileType(kind), LocalhostProfile: name}
	}
	old := m.GetApparmorProfile()
	name, localhost := strings.CutPrefix(old, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case localhost:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	case old == "" || old == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	}
	return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
}
