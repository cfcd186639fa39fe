package gmsa

import (
	"fmt"

	"github.com/credence-id/credence/internal/decision"
)

// Spec is what is known of the GMSACredentialSpec of a name.
type Spec struct {
	// Exists reports whether the object exists.
	Exists bool
	// Contents are its credspec, by Canonical. They are empty if Fault has the reason why they cannot be used.
	Contents string
	Fault    string
}

// SpecOf is what is known of an object that exists, by its credspec.
func SpecOf(credspec any) Spec {
	contents, err := Canonical(credspec)
	if err != nil {
		return Spec{Exists: true, Fault: err.Error()}
	}
	return Spec{Exists: true, Contents: contents}
}

// Expand fills in the contents of those references of a request that have a name alone; others stay as they are. It refuses names
// without an object (422), names that the service account may not use (403), and objects of no use (422).
func Expand(r Request) decision.Result {
	var patch []decision.Operation
	var denials []*decision.Denial
	for _, reference := range Unresolved(r.References) {
		spec := r.Specs[reference.Name]
		denial := spec.unusable(reference)
		if spec.Exists && !r.Uses[reference.Name].Allowed {
			denial = r.unauthorized(reference)
		}
		if denial != nil {
			denials = append(denials, denial)
			continue
		}
		patch = append(patch, decision.Operation{Op: "add", Path: reference.pointer, Value: spec.Contents})
	}
	if len(denials) > 0 {
		return decision.Result{Denial: first(denials)}
	}
	return decision.Result{Patch: patch}
}

func (s Spec) unusable(r Reference) *decision.Denial {
	switch {
	case !s.Exists:
		return decision.Invalid(fmt.Sprintf("%s: there is no GMSACredentialSpec %q: correct the name, or ask a cluster admin for it", r.NamePath, r.Name)).At(r.NamePath).OfAbsent()
	case s.Fault != "":
		return decision.Invalid(fmt.Sprintf("%s: GMSACredentialSpec %q can't be used: %s: a cluster admin must correct it", r.NamePath, r.Name, s.Fault)).At(r.NamePath)
	}
	return nil
}
