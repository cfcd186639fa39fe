package securitycontext

import (
	"fmt"
	"math/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubecore "k8s.io/kubernetes/pkg/apis/core/v1"
)

// pods generates pods in which only that is wrong which internal/securitycontext has rules for: so all of Kubernetes' errors
// can be compared.
type pods struct{ *rand.Rand }

// pod has Kubernetes' defaults.
func (g pods) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "pod", "default"
	spec := &pod.Spec
	g.os(spec)
	for i := range g.Intn(3) {
		spec.InitContainers = append(spec.InitContainers, g.container(fmt.Sprintf("init-%d", i), spec.OS))
		if g.Intn(2) == 0 {
			spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		} else {
			spec.InitContainers[i].Lifecycle = nil
		}
	}
	for i := range 1 + g.Intn(3) {
		spec.Containers = append(spec.Containers, g.container(fmt.Sprintf("container-%d", i), spec.OS))
	}
	for i := range g.Intn(3) {
		c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container(fmt.Sprintf("ephemeral-%d", i), spec.OS))}
		c.Lifecycle = nil
		spec.EphemeralContainers = append(spec.EphemeralContainers, c)
	}
	g.podLevel(spec)
	kubecore.SetObjectDefaults_Pod(pod)
	return pod
}

func (g pods) os(spec *corev1.PodSpec) {
	switch g.Intn(10) {
	case 0, 1, 2:
	case 3:
		spec.OS = &corev1.PodOS{Name: oneOf(g, []corev1.OSName{"", "darwin", "Windows", "linux "})}
	case 4, 5, 6:
		spec.OS = &corev1.PodOS{Name: corev1.Linux}
	default:
		spec.OS = &corev1.PodOS{Name: corev1.Windows}
	}
}

func (g pods) podLevel(spec *corev1.PodSpec) {
	spec.HostNetwork = g.Intn(2) == 0
	// A pod with users of its own may not share anything else with the host, and no process namespace is shared twice.
	switch g.Intn(6) {
	case 0:
		spec.HostPID, spec.ShareProcessNamespace = true, sometimes(g, false)
	case 1:
		spec.HostIPC, spec.ShareProcessNamespace = true, sometimes(g, true)
	case 2:
		spec.HostUsers = new(true)
	case 3:
		if !spec.HostNetwork {
			spec.HostUsers = new(false)
		}
	}
	if g.Intn(4) == 0 {
		spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	}
	if g.Intn(5) == 0 {
		return
	}
	sc := &corev1.PodSecurityContext{WindowsOptions: g.windowsOptions(), RunAsNonRoot: sometimes(g, true)}
	spec.SecurityContext = sc
	if g.Intn(2) == 0 {
		return
	}
	sc.SELinuxOptions = sometimes(g, corev1.SELinuxOptions{Level: "s0"})
	sc.RunAsUser, sc.RunAsGroup, sc.FSGroup = sometimes(g, int64(0)), sometimes(g, int64(1)), sometimes(g, int64(2))
	sc.FSGroupChangePolicy = sometimes(g, corev1.FSGroupChangeAlways)
	sc.SeccompProfile = sometimes(g, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	sc.AppArmorProfile = sometimes(g, corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined})
	sc.SupplementalGroups = oneOf(g, [][]int64{nil, nil, {}, {1}})
	sc.SupplementalGroupsPolicy = sometimes(g, corev1.SupplementalGroupsPolicyMerge)
	sc.SELinuxChangePolicy = sometimes(g, corev1.SELinuxChangePolicyRecursive)
	sc.Sysctls = oneOf(g, [][]corev1.Sysctl{nil, nil, {}, {{Name: "vm.overcommit_memory", Value: "1"}}})
}

func (g pods) container(name string, os *corev1.PodOS) corev1.Container {
	c := corev1.Container{Name: name, Image: "image"}
	if g.Intn(8) == 0 {
		c.Lifecycle = &corev1.Lifecycle{StopSignal: new(g.signal(os))}
	}
	if g.Intn(4) == 0 {
		return c
	}
	sc := &corev1.SecurityContext{WindowsOptions: g.windowsOptions(), RunAsNonRoot: sometimes(g, true)}
	c.SecurityContext = sc
	if g.Intn(2) == 0 {
		return c
	}
	sc.SELinuxOptions = sometimes(g, corev1.SELinuxOptions{Role: "role"})
	sc.RunAsUser, sc.RunAsGroup = sometimes(g, int64(1000)), sometimes(g, int64(0))
	sc.Capabilities = sometimes(g, corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})
	sc.Privileged = sometimes(g, g.Intn(2) == 0)
	sc.AllowPrivilegeEscalation = sometimes(g, sc.Privileged != nil && *sc.Privileged)
	sc.ReadOnlyRootFilesystem = sometimes(g, g.Intn(2) == 0)
	sc.ProcMount = sometimes(g, corev1.DefaultProcMount)
	sc.SeccompProfile = sometimes(g, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("profile.json")})
	sc.AppArmorProfile = sometimes(g, corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault})
	return c
}

func (g pods) signal(os *corev1.PodOS) corev1.Signal {
	names := []corev1.Signal{"SIGTERM", "SIGKILL", "SIGINT", "SIGRTMIN+3", "SIGBREAK", "sigterm", ""}
	if os != nil && os.Name == corev1.Windows {
		names = names[:4] // mostly well known
	}
	return oneOf(g, names)
}

func (g pods) windowsOptions() *corev1.WindowsSecurityContextOptions {
	if g.Intn(3) == 0 {
		return nil
	}
	return &corev1.WindowsSecurityContextOptions{
		GMSACredentialSpecName: sometimes(g, g.name()),
		GMSACredentialSpec:     sometimes(g, g.contents()),
		RunAsUserName:          sometimes(g, g.userName()),
		HostProcess:            sometimes(g, g.Intn(3) > 0),
	}
}

func (g pods) name() string {
	if g.Intn(2) == 0 {
		return "webapp1-credspec"
	}
	return oneOf(g, []string{"", "a", "A", "a.b-c", "a..b", "-a", "a-", ".", "a/b", "..", "a b", "é", "a\xff", strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("_", 254)})
}

func (g pods) contents() string {
	if g.Intn(2) == 0 {
		return `{"CmsPlugins":["ActiveDirectory"]}`
	}
	return oneOf(g, []string{"", " ", "not json", "\xff", "\x00", strings.Repeat("x", 64<<10-1), strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10+1), strings.Repeat("é", 32<<10), strings.Repeat("é", 32<<10) + "x"})
}

// userName is put together from what rules make a difference of.
func (g pods) userName() string {
	if g.Intn(4) == 0 {
		return oneOf(g, []string{"ContainerAdministrator", `NT AUTHORITY\NETWORK SERVICE`, `contoso.com\webapp$`, ""})
	}
	parts := []string{
		`\`, `\`, ".", " ", "-", "_", "@", "$", "'", "%", `"`, "/", ":", ";", "|", "=", ",", "+", "*", "?", "<", ">", "[", "]",
		"a", "Z", "0", "user", "DOMAIN", "é", "\xff", "\u0085", "\u200b", strings.Repeat("a", 15), strings.Repeat("b", 62),
		strings.Repeat("c", 63), strings.Repeat("é", 15), strings.Repeat(".", 100), strings.Repeat("d.", 60), strings.Repeat("e", 104),
		strings.Repeat("long.", 51), strings.Repeat("f", 256),
	}
	if g.Intn(10) == 0 {
		parts = append(parts, "\x00", "\t", "\n", "\x1f", "\x7f")
	}
	var name strings.Builder
	for range 1 + g.Intn(6) {
		name.WriteString(oneOf(g, parts))
	}
	return name.String()
}

func oneOf[T any](g pods, from []T) T { return from[g.Intn(len(from))] }

// sometimes is nil, or value.
func sometimes[T any](g pods, value T) *T {
	if g.Intn(2) == 0 {
		return nil
	}
	return &value
}
