package gmsa

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/decision"
)

// MaxNames bounds the GMSACredentialSpecs that a pod can name: the number that a policy can check. It also bounds the cost of one
// request.
const MaxNames = 28

// Names are the distinct names of references, in their order, or a refusal (422) of the first one that no object can have, or
// that is one too many: such a name goes no further.
func Names(references []Reference) ([]string, *decision.Denial) {
	var names []string
	for _, r := range references {
		if r.Name == "" || slices.Contains(names, r.Name) {
			continue
		}
		if faults := validation.IsDNS1123Subdomain(r.Name); len(faults) > 0 {
			return nil, decision.Invalid(fmt.Sprintf("%s: %.80q is not a valid name of a GMSACredentialSpec: %s", r.NamePath, r.Name, strings.Join(faults, "; "))).At(r.NamePath)
		}
		if len(names) == MaxNames {
			return nil, decision.Invalid(fmt.Sprintf("%s: %q is one too many: %d different GMSACredentialSpecs can be named, however often each: split the pod", r.NamePath, r.Name, MaxNames)).At(r.NamePath)
		}
		names = append(names, r.Name)
	}
	return names, nil
}

// Unresolved are the references that have a name and no contents.
func Unresolved(references []Reference) []Reference {
	return slices.DeleteFunc(slices.Clone(references), func(r Reference) bool { return r.Name == "" || r.Contents != "" })
}

// Of returns the references that a request brings along. added are the names of the ephemeral containers that are added to a
// pod which runs: all else of it was decided on when it was created. It is nil when a pod is created.
func Of(references []Reference, added []string) []Reference {
	if added == nil {
		return references
	}
	var brought []Reference
	for _, r := range references {
		if r.ephemeral && slices.Contains(added, r.Container) {
			brought = append(brought, r)
		}
	}
	return brought
}

// Run returns the references that take effect with this request: those of Of, annotations that were set earlier for an added
// container, and the pod's reference for an added ephemeral container without its own.
func Run(references []Reference, added []string) []Reference {
	if added == nil {
		return references
	}
	var run []Reference
	own := map[string]bool{}
	for _, r := range references {
		if r.Container != "" && (r.ephemeral || r.annotation) && slices.Contains(added, r.Container) {
			run, own[r.Container] = append(run, r), true
		}
	}
	if len(own) == len(added) {
		return run
	}
	for _, r := range references {
		if r.Container == "" {
			run = append(run, r)
		}
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

// Under are references of a pod within something else, as they are named there: "spec.template." of a Deployment.
func Under(prefix string, references []Reference) []Reference {
	within := make([]Reference, len(references))
	for i, r := range references {
		r.NamePath, r.ContentsPath = prefix+r.NamePath, prefix+r.ContentsPath
		within[i] = r
	}
	return within
}
