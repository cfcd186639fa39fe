// Package fit makes the strictest profile that given pods meet. In go pods of one account; out comes the spec of a profile that refuses none of
// them. A field on which the pods differ is left open. It decides from the pods alone, and changes none.
package fit

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/target"
)

// Spec returns the spec of the profile; of no pods, one that has nothing. The workload identities and the name are not seen in pods.
func Spec(pods []profile.Pod) accounts.ServiceAccountProfileSpec {
	if len(pods) == 0 {
		return accounts.ServiceAccountProfileSpec{}
	}
	spec := accounts.ServiceAccountProfileSpec{Secrets: secrets(pods)}
	if !slices.ContainsFunc(pods, func(p profile.Pod) bool { return hasToken(p.Pod) }) {
		spec.AutomountToken = new(false)
	}
	contexts := accounts.SecurityContexts{Windows: windows(pods)}
	contexts.Pod, contexts.Container = linux(pods)
	if contexts.Pod != nil || contexts.Container != nil || contexts.Windows != nil {
		spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, SecurityContexts: contexts}
	}
	return spec
}

// effective are the contexts of all containers of pods, as they are once their pod's are taken into account.
func effective(pods []profile.Pod) []*corev1.SecurityContext {
	var all []*corev1.SecurityContext
	for _, p := range pods {
		own := p.Spec.SecurityContext
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			all = append(all, securitycontext.Effective(own, c.SecurityContext))
		}
		for _, c := range p.Spec.EphemeralContainers {
			all = append(all, securitycontext.Effective(own, c.SecurityContext))
		}
	}
	return all
}

// common is the value that all have, or nil.
func common[C, V any](all []C, at func(C) *V) *V {
	if len(all) == 0 {
		return nil
	}
	first := at(all[0])
	for _, c := range all {
		if v := at(c); v == nil || !equality.Semantic.DeepEqual(v, first) {
			return nil
		}
	}
	return first
}

// when is the value that all have, if it is this one.
func when[C any, V comparable](all []C, at func(C) *V, wanted V) *V {
	if v := common(all, at); v != nil && *v == wanted {
		return v
	}
	return nil
}

// linux returns the contexts of pods that can run on Linux. Fields that containers inherit are in that of the pod.
func linux(all []profile.Pod) (*corev1.PodSecurityContext, *corev1.SecurityContext) {
	pods := slices.DeleteFunc(slices.Clone(all), func(p profile.Pod) bool { return p.OS == target.Windows })
	of, every := effective(pods), effective(all)
	pod := &corev1.PodSecurityContext{
		RunAsUser:    common(of, func(c *corev1.SecurityContext) *int64 { return c.RunAsUser }),
		RunAsGroup:   common(of, func(c *corev1.SecurityContext) *int64 { return c.RunAsGroup }),
		RunAsNonRoot: when(every, func(c *corev1.SecurityContext) *bool { return c.RunAsNonRoot }, true),
	}
	container := &corev1.SecurityContext{
		ReadOnlyRootFilesystem: when(of, func(c *corev1.SecurityContext) *bool { return c.ReadOnlyRootFilesystem }, true),
	}
	// A privileged container is free of all of these, whatever its context has.
	if len(of) > 0 && !slices.ContainsFunc(of, func(c *corev1.SecurityContext) bool { return c.Privileged != nil && *c.Privileged }) {
		container.Privileged = new(false)
		container.AllowPrivilegeEscalation = when(of, func(c *corev1.SecurityContext) *bool { return c.AllowPrivilegeEscalation }, false)
		container.Capabilities = capabilities(of)
		pod.SELinuxOptions = common(of, func(c *corev1.SecurityContext) *corev1.SELinuxOptions { return c.SELinuxOptions })
		pod.SeccompProfile = confinement(of, func(c *corev1.SecurityContext) *corev1.SeccompProfile { return c.SeccompProfile },
			func(p corev1.SeccompProfile) string { return string(p.Type) }, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
		pod.AppArmorProfile = confinement(of, func(c *corev1.SecurityContext) *corev1.AppArmorProfile { return c.AppArmorProfile },
			func(p corev1.AppArmorProfile) string { return string(p.Type) }, corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault})
	}
	own := podContexts(pods)
	pod.FSGroup = common(own, func(c *corev1.PodSecurityContext) *int64 { return c.FSGroup })
	pod.SupplementalGroups = union(own, func(c *corev1.PodSecurityContext) []int64 { return c.SupplementalGroups })
	pod.SupplementalGroupsPolicy = when(own, func(c *corev1.PodSecurityContext) *corev1.SupplementalGroupsPolicy { return c.SupplementalGroupsPolicy }, corev1.SupplementalGroupsPolicyStrict)
	pod.Sysctls = union(own, func(c *corev1.PodSecurityContext) []corev1.Sysctl { return c.Sysctls })
	values := map[string]string{}
	for _, sysctl := range pod.Sysctls {
		if value, there := values[sysctl.Name]; there && value != sysctl.Value {
			pod.Sysctls = nil // a profile has one value for each
			break
		}
		values[sysctl.Name] = sysctl.Value
	}
	return orNil(pod), orNil(container)
}

func podContexts(pods []profile.Pod) []*corev1.PodSecurityContext {
	var all []*corev1.PodSecurityContext
	for _, p := range pods {
		all = append(all, cmp.Or(p.Spec.SecurityContext, &corev1.PodSecurityContext{}))
	}
	return all
}

// union are the values that any has, if each has some: a profile gives its list to pods that have none.
func union[C any, V comparable](all []C, at func(C) []V) []V {
	var values []V
	for _, c := range all {
		own := at(c)
		if len(own) == 0 {
			return nil
		}
		for _, v := range own {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	return values
}

// confinement is the profile that all have; or the runtime's, than which one of the node's own files is not weaker.
func confinement[V any](all []*corev1.SecurityContext, at func(*corev1.SecurityContext) *V, kind func(V) string, runtime V) *V {
	if same := common(all, at); same != nil {
		if kind(*same) == string(corev1.SeccompProfileTypeUnconfined) {
			return nil
		}
		return same
	}
	if slices.ContainsFunc(all, func(c *corev1.SecurityContext) bool {
		v := at(c)
		return v == nil || kind(*v) == string(corev1.SeccompProfileTypeUnconfined)
	}) {
		return nil
	}
	return &runtime
}

const allCapabilities corev1.Capability = "ALL"

// capabilities drop what all drop, and add what any adds; nil if there is nothing that all drop: it would be given to containers that have none.
func capabilities(all []*corev1.SecurityContext) *corev1.Capabilities {
	var merged *corev1.Capabilities
	for _, c := range all {
		if c.Capabilities == nil {
			return nil
		}
		own := c.Capabilities
		switch {
		case merged == nil:
			merged = &corev1.Capabilities{Drop: slices.Clone(own.Drop)}
		case slices.Contains(merged.Drop, allCapabilities):
			merged.Drop = slices.Clone(own.Drop)
		case !slices.Contains(own.Drop, allCapabilities):
			merged.Drop = slices.DeleteFunc(merged.Drop, func(c corev1.Capability) bool { return !slices.Contains(own.Drop, c) })
		}
		for _, added := range own.Add {
			if !slices.Contains(merged.Add, added) {
				merged.Add = append(merged.Add, added)
			}
		}
	}
	if merged == nil || len(merged.Drop) == 0 {
		return nil
	}
	slices.Sort(merged.Add)
	return merged
}

// windows returns the options that all containers of Windows have in common. A profile with such options refuses a pod that has some and no operating system.
func windows(pods []profile.Pod) *corev1.WindowsSecurityContextOptions {
	if slices.ContainsFunc(pods, func(p profile.Pod) bool { return p.OS == "" && profile.HasWindowsOptions(p.Pod) }) {
		return nil
	}
	var all []*corev1.WindowsSecurityContextOptions
	for _, c := range effective(slices.DeleteFunc(slices.Clone(pods), func(p profile.Pod) bool { return p.OS == target.Linux })) {
		all = append(all, cmp.Or(c.WindowsOptions, &corev1.WindowsSecurityContextOptions{}))
	}
	options := &corev1.WindowsSecurityContextOptions{
		GMSACredentialSpecName: common(all, func(o *corev1.WindowsSecurityContextOptions) *string { return o.GMSACredentialSpecName }),
		RunAsUserName:          common(all, func(o *corev1.WindowsSecurityContextOptions) *string { return o.RunAsUserName }),
	}
	if slices.ContainsFunc(pods, func(p profile.Pod) bool { return p.OS == target.Windows }) &&
		!slices.ContainsFunc(all, func(o *corev1.WindowsSecurityContextOptions) bool { return o.HostProcess != nil && *o.HostProcess }) {
		options.HostProcess = new(false)
	}
	return orNil(options)
}

func orNil[C any](c *C) *C {
	if equality.Semantic.DeepEqual(c, new(C)) {
		return nil
	}
	return c
}

// secrets allows those that the pods name. Pull secrets that all pods have are filled in for others.
func secrets(pods []profile.Pod) *accounts.ProfileSecrets {
	found := &accounts.ProfileSecrets{Allowed: []string{}}
	if pull := common(pods, func(p profile.Pod) *[]corev1.LocalObjectReference { return &p.Spec.ImagePullSecrets }); pull != nil {
		for _, reference := range *pull {
			found.ImagePull = append(found.ImagePull, reference.Name)
		}
	}
	for _, p := range pods {
		for name := range profile.References(p.Pod, nil, func(name string) bool {
			return !slices.Contains(p.Tokens, name) && !slices.Contains(found.Allowed, name) && !slices.Contains(found.ImagePull, name)
		}) {
			found.Allowed = append(found.Allowed, name)
		}
	}
	slices.Sort(found.Allowed)
	return found
}

// hasToken reports whether a pod has a token of its account, as the API server mounts it.
func hasToken(pod *corev1.Pod) bool {
	if a := pod.Spec.AutomountServiceAccountToken; a != nil {
		return *a
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil
	})
}
