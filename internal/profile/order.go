package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// Order is the order of strictness of a field, in words.
type Order struct {
	// Of is the part of the profile that has the field: pod, container or windows.
	Of, Field, Words string
}

// Orders are those of all fields, as docs/reference/profiles.md has them.
func Orders() []Order {
	var all []Order
	for _, r := range podRules {
		all = append(all, Order{"pod", r.name, r.words})
	}
	for _, r := range containerRules {
		all = append(all, Order{"container", r.name, r.words})
	}
	for _, r := range windowsRules {
		all = append(all, Order{"windows", r.name, r.words})
	}
	return all
}

// rule is a field of a security context of type C, and its order of strictness.
type rule[C any] struct {
	name, words string
	value       func(*C) any // nil if the context leaves the field open
	fill        func(into, from *C)
	// weaker compares with what is wanted; only if that is not left open.
	weaker func(has, wants *C) bool
}

// order is an order of strictness of values; has is nil where the field is left open.
type order[V any] struct {
	words  string
	weaker func(has *V, wants V) bool
}

func same[V any]() order[V] {
	return order[V]{"only the same value", func(has *V, wants V) bool { return has == nil || !equality.Semantic.DeepEqual(*has, wants) }}
}

func none[V any]() order[V] {
	return order[V]{"no order: it is filled in, and never refused", func(*V, V) bool { return false }}
}

// ordered has its values from the strictest to the weakest; open is what a field that is left open is taken for.
func ordered[V comparable](open V, strictest, weakest V) order[V] {
	return order[V]{fmt.Sprintf("`%v`, then `%v`; open is `%v`", strictest, weakest, open), func(has *V, wants V) bool {
		actual := ptr.Deref(has, open)
		return wants != weakest && actual != wants
	}}
}

// subset is the order of lists, of which a shorter one is stricter.
func subset[V comparable]() order[[]V] {
	return order[[]V]{"only values of the profile; fewer are stricter", func(has *[]V, wants []V) bool {
		return has != nil && slices.ContainsFunc(*has, func(v V) bool { return !slices.Contains(wants, v) })
	}}
}

// confinement is the order of seccomp and AppArmor. A profile of the node's own files is as strict as the runtime's, as for Pod Security,
// and comparable with no other one.
func confinement[V any](words string, parts func(V) (kind string, file *string)) order[V] {
	return order[V]{words, func(has *V, wants V) bool {
		wanted, file := parts(wants)
		if wanted == string(corev1.SeccompProfileTypeUnconfined) {
			return false
		}
		if has == nil {
			return true
		}
		kind, own := parts(*has)
		if wanted == string(corev1.SeccompProfileTypeLocalhost) {
			return kind != wanted || !equality.Semantic.DeepEqual(own, file)
		}
		return kind != wanted && kind != string(corev1.SeccompProfileTypeLocalhost)
	}}
}

const allCapabilities corev1.Capability = "ALL"

// fewerCapabilities compares capabilities: those that are added must be the profile's, and those that it drops be dropped.
func fewerCapabilities(has *corev1.Capabilities, wants corev1.Capabilities) bool {
	own := ptr.Deref(has, corev1.Capabilities{})
	return slices.ContainsFunc(own.Add, func(c corev1.Capability) bool { return !covers(wants.Add, c) }) ||
		slices.ContainsFunc(wants.Drop, func(c corev1.Capability) bool { return !covers(own.Drop, c) })
}

func covers(list []corev1.Capability, c corev1.Capability) bool {
	return slices.Contains(list, c) || slices.Contains(list, allCapabilities)
}

// optional is the rule of a field that is a pointer.
func optional[C, V any](name string, o order[V], at func(*C) **V) rule[C] {
	return rule[C]{name: name, words: o.words,
		value: func(c *C) any {
			if v := *at(c); v != nil {
				return *v
			}
			return nil
		},
		fill:   func(into, from *C) { *at(into) = *at(from) },
		weaker: func(has, wants *C) bool { return o.weaker(*at(has), **at(wants)) },
	}
}

// list is the rule of a field that is a list, which is left open if it is empty.
func list[C, V any](name string, o order[[]V], at func(*C) *[]V) rule[C] {
	return rule[C]{name: name, words: o.words,
		value: func(c *C) any {
			if v := *at(c); len(v) > 0 {
				return v
			}
			return nil
		},
		fill:   func(into, from *C) { *at(into) = slices.Clone(*at(from)) },
		weaker: func(has, wants *C) bool { return o.weaker(at(has), *at(wants)) },
	}
}

var (
	seccompOrder = confinement("`Localhost` and `RuntimeDefault`, then `Unconfined`; of `Localhost`, only the same file; open is `Unconfined`", func(p corev1.SeccompProfile) (string, *string) {
		return string(p.Type), p.LocalhostProfile
	})
	appArmorOrder = confinement("`Localhost` and `RuntimeDefault`, then `Unconfined`; of `Localhost`, only the same one; open is `Unconfined`", func(p corev1.AppArmorProfile) (string, *string) {
		return string(p.Type), p.LocalhostProfile
	})
	capabilityOrder = order[corev1.Capabilities]{"`add` with no others than the profile's, and `drop` with all of the profile's; `ALL` covers each", fewerCapabilities}
	nonRootOrder    = ordered(false, true, false)
)

// podRules are the fields of a pod's security context. Containers inherit those that containerRules have, too, and these are compared there.
var podRules = []rule[corev1.PodSecurityContext]{
	optional("seLinuxOptions", same[corev1.SELinuxOptions](), func(c *corev1.PodSecurityContext) **corev1.SELinuxOptions { return &c.SELinuxOptions }),
	optional("runAsUser", same[int64](), func(c *corev1.PodSecurityContext) **int64 { return &c.RunAsUser }),
	optional("runAsGroup", same[int64](), func(c *corev1.PodSecurityContext) **int64 { return &c.RunAsGroup }),
	optional(runAsNonRoot, nonRootOrder, func(c *corev1.PodSecurityContext) **bool { return &c.RunAsNonRoot }),
	optional("seccompProfile", seccompOrder, func(c *corev1.PodSecurityContext) **corev1.SeccompProfile { return &c.SeccompProfile }),
	optional("appArmorProfile", appArmorOrder, func(c *corev1.PodSecurityContext) **corev1.AppArmorProfile { return &c.AppArmorProfile }),
	optional("fsGroup", same[int64](), func(c *corev1.PodSecurityContext) **int64 { return &c.FSGroup }),
	optional("fsGroupChangePolicy", none[corev1.PodFSGroupChangePolicy](), func(c *corev1.PodSecurityContext) **corev1.PodFSGroupChangePolicy { return &c.FSGroupChangePolicy }),
	list("supplementalGroups", subset[int64](), func(c *corev1.PodSecurityContext) *[]int64 { return &c.SupplementalGroups }),
	optional("supplementalGroupsPolicy", ordered(corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict, corev1.SupplementalGroupsPolicyMerge),
		func(c *corev1.PodSecurityContext) **corev1.SupplementalGroupsPolicy {
			return &c.SupplementalGroupsPolicy
		}),
	list("sysctls", subset[corev1.Sysctl](), func(c *corev1.PodSecurityContext) *[]corev1.Sysctl { return &c.Sysctls }),
	optional("seLinuxChangePolicy", none[corev1.PodSELinuxChangePolicy](), func(c *corev1.PodSecurityContext) **corev1.PodSELinuxChangePolicy { return &c.SELinuxChangePolicy }),
}

// containerRules are the fields of a container's security context.
var containerRules = []rule[corev1.SecurityContext]{
	optional("seLinuxOptions", same[corev1.SELinuxOptions](), func(c *corev1.SecurityContext) **corev1.SELinuxOptions { return &c.SELinuxOptions }),
	optional("runAsUser", same[int64](), func(c *corev1.SecurityContext) **int64 { return &c.RunAsUser }),
	optional("runAsGroup", same[int64](), func(c *corev1.SecurityContext) **int64 { return &c.RunAsGroup }),
	optional(runAsNonRoot, nonRootOrder, func(c *corev1.SecurityContext) **bool { return &c.RunAsNonRoot }),
	optional("seccompProfile", seccompOrder, func(c *corev1.SecurityContext) **corev1.SeccompProfile { return &c.SeccompProfile }),
	optional("appArmorProfile", appArmorOrder, func(c *corev1.SecurityContext) **corev1.AppArmorProfile { return &c.AppArmorProfile }),
	optional("capabilities", capabilityOrder, func(c *corev1.SecurityContext) **corev1.Capabilities { return &c.Capabilities }),
	optional("privileged", ordered(false, false, true), func(c *corev1.SecurityContext) **bool { return &c.Privileged }),
	optional(allowPrivilegeEscalation, ordered(true, false, true), func(c *corev1.SecurityContext) **bool { return &c.AllowPrivilegeEscalation }),
	optional("readOnlyRootFilesystem", ordered(false, true, false), func(c *corev1.SecurityContext) **bool { return &c.ReadOnlyRootFilesystem }),
	optional("procMount", ordered(corev1.DefaultProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount), func(c *corev1.SecurityContext) **corev1.ProcMountType { return &c.ProcMount }),
}

// windowsRules are the fields of windowsOptions.
var windowsRules = []rule[corev1.WindowsSecurityContextOptions]{
	optional("gmsaCredentialSpecName", same[string](), func(c *corev1.WindowsSecurityContextOptions) **string { return &c.GMSACredentialSpecName }),
	optional("gmsaCredentialSpec", same[string](), func(c *corev1.WindowsSecurityContextOptions) **string { return &c.GMSACredentialSpec }),
	optional("runAsUserName", same[string](), func(c *corev1.WindowsSecurityContextOptions) **string { return &c.RunAsUserName }),
	optional(hostProcess, ordered(false, false, true), func(c *corev1.WindowsSecurityContextOptions) **bool { return &c.HostProcess }),
}

const (
	runAsNonRoot             = "runAsNonRoot" // the one field of Linux that Windows has too
	allowPrivilegeEscalation = "allowPrivilegeEscalation"
	hostProcess              = "hostProcess"
)

// inherited reports whether containers inherit a field of their pod.
func inherited(name string) bool {
	return slices.ContainsFunc(containerRules, func(r rule[corev1.SecurityContext]) bool { return r.name == name })
}

// shown is a value for people, as JSON, without quotes around one word.
func shown(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.Trim(string(text), `"`)
}
