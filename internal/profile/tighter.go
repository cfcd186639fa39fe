package profile

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Tighter returns the fields in which the security context of a container is weaker than another one, with the values that make it as strict,
// and each field that is weaker. A container keeps those of its capabilities that the other context has, and gets no other ones. The result
// shares memory with what it was made of.
func Tighter(has, wants *corev1.SecurityContext) (*corev1.SecurityContext, []Difference) {
	changes := &corev1.SecurityContext{}
	var found []Difference
	for _, r := range containerRules {
		if r.value(wants) == nil || !r.weaker(has, wants) {
			continue
		}
		r.fill(changes, wants)
		found = append(found, Difference{Field: r.name, Has: shown(r.value(has)), Wants: shown(r.value(wants))})
	}
	if changes.Capabilities != nil {
		changes.Capabilities = both(has.Capabilities, wants.Capabilities)
	}
	return changes, found
}

// both adds no capability that one of the two does not add, and drops each that one of them drops.
func both(has, wants *corev1.Capabilities) *corev1.Capabilities {
	own := ptr.Deref(has, corev1.Capabilities{})
	kept := &corev1.Capabilities{Drop: slices.Clone(own.Drop)}
	for _, c := range own.Add {
		if covers(wants.Add, c) {
			kept.Add = append(kept.Add, c)
		}
	}
	for _, c := range wants.Drop {
		if !covers(kept.Drop, c) {
			kept.Drop = append(kept.Drop, c)
		}
	}
	return kept
}
