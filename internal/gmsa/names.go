package gmsa

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/admission"
)

// Names are the distinct names of references, in their order, or a refusal (422) of the first one that no object can have:
// such a name goes no further.
func Names(references []Reference) ([]string, *admission.Denial) {
	var names []string
	seen := map[string]bool{}
	for _, r := range references {
		if r.Name == "" || seen[r.Name] {
			continue
		}
		if faults := validation.IsDNS1123Subdomain(r.Name); len(faults) > 0 {
			return nil, admission.Invalid(fmt.Sprintf("%s: %.80q is no name of a GMSACredentialSpec: %s", r.NamePath, r.Name, strings.Join(faults, "; ")))
		}
		seen[r.Name] = true
		names = append(names, r.Name)
	}
	return names, nil
}

// Unresolved are the references that have a name and no contents.
func Unresolved(references []Reference) []Reference {
	var unresolved []Reference
	for _, r := range references {
		if r.Name != "" && r.Contents == "" {
			unresolved = append(unresolved, r)
		}
	}
	return unresolved
}

// Of returns the references that a request brings along. added are the names of the ephemeral containers that are added to a
// pod which runs: all else of it was decided on when it was created. It is nil when a pod is created.
func Of(references []Reference, added []string) []Reference {
	if added == nil {
		return references
	}
	var brought []Reference
	for _, r := range references {
		for _, name := range added {
			if r.ephemeral && r.Container == name {
				brought = append(brought, r)
			}
		}
	}
	return brought
}

// Run are the references that containers brought along run by: beside Of, that of the whole pod where an ephemeral container is
// added that has none of its own, and so runs as the pod does.
func Run(references []Reference, added []string) []Reference {
	run := Of(references, added)
	if added == nil {
		return run
	}
	own := map[string]bool{}
	for _, r := range run {
		own[r.Container] = true
	}
	for _, name := range added {
		if own[name] {
			continue
		}
		for _, r := range references {
			if r.Container == "" && r.Name != "" {
				run = append(run, r)
			}
		}
		break
	}
	return run
}

// Filled are references as they are once Expand has filled in what is known.
func Filled(references []Reference, specs map[string]Spec) []Reference {
	filled := make([]Reference, len(references))
	for i, r := range references {
		if r.Name != "" && r.Contents == "" {
			r.Contents = specs[r.Name].Contents
		}
		filled[i] = r
	}
	return filled
}
