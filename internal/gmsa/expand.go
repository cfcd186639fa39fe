package gmsa

import (
	"fmt"

	"github.com/credence-id/credence/internal/admission"
)

// Spec is what is known of the GMSACredentialSpec of a name.
type Spec struct {
	// Exists says that there is one.
	Exists bool
	// Contents are its credspec, by Canonical; empty where Fault says why it has none that could be used.
	Contents string
	Fault    string
}

// Expand fills in the contents of references that have a name alone; others stay as they are. specs has what is known of each
// name. It refuses (422) a name without an object, or whose object is of no use.
func Expand(references []Reference, specs map[string]Spec) admission.Result {
	var result admission.Result
	for _, r := range Unresolved(references) {
		spec := specs[r.Name]
		if denial := spec.unusable(r); denial != nil {
			return admission.Result{Denial: denial}
		}
		result.Patch = append(result.Patch, admission.Operation{Op: "add", Path: r.pointer, Value: spec.Contents})
	}
	return result
}

func (s Spec) unusable(r Reference) *admission.Denial {
	switch {
	case !s.Exists:
		return admission.Invalid(fmt.Sprintf("%s: there is no GMSACredentialSpec %q: correct the name, or ask a cluster admin for it", r.NamePath, r.Name))
	case s.Fault != "":
		return admission.Invalid(fmt.Sprintf("%s: GMSACredentialSpec %q can't be used: %s: a cluster admin must correct it", r.NamePath, r.Name, s.Fault))
	}
	return nil
}
