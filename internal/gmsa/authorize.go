package gmsa

import (
	"errors"
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
)

// Request is the input of Authorize.
type Request struct {
	Namespace, ServiceAccount string
	// References are those that the request brings along.
	References []Reference
	// Specs and Uses have what is known of each name, and what the service account may use.
	Specs map[string]Spec
	Uses  map[string]authority.Answer
	// UserReferences are those that User, the author of the request, must also be allowed to use, by UserUses.
	UserReferences []Reference
	User           string
	UserUses       map[string]authority.Answer
}

// Authorize admits a pod with these references, or refuses it with the first of its Denials, and the others.
func Authorize(r Request) decision.Result {
	return decision.Result{Denial: first(r.denials())}
}

func first(denials []*decision.Denial) *decision.Denial {
	if len(denials) == 0 {
		return nil
	}
	denials[0].Others = denials[1:]
	return denials[0]
}

// denials are all reasons to refuse. Their order hides the contents of a credential spec from users who are not allowed to use it:
// contents without a name (422), the right to use (403), and only then, for allowed objects, whether the object exists, whether its
// contents are filled in, and whether the pod's contents are equal to them (422).
func (r Request) denials() []*decision.Denial {
	var denials []*decision.Denial
	add := func(denial *decision.Denial) bool {
		if denial != nil {
			denials = append(denials, denial)
		}
		return denial != nil
	}
	for _, reference := range r.References {
		if reference.Name == "" && reference.Contents != "" {
			add(nameless(reference))
		}
	}
	withheld := map[string]bool{}
	for _, reference := range r.References {
		if reference.Name != "" && add(r.unauthorized(reference)) {
			withheld[reference.Name] = true
		}
	}
	for _, reference := range r.UserReferences {
		if reference.Name == "" { // without a name there is no right to check
			add(nameless(reference))
		} else if add(r.unauthorizedUser(reference)) {
			withheld[reference.Name] = true
		}
	}
	for _, reference := range r.References {
		if reference.Name != "" && !withheld[reference.Name] {
			add(r.mismatch(reference))
		}
	}
	return denials
}

func nameless(r Reference) *decision.Denial {
	return decision.Invalid(fmt.Sprintf("%s is set, and %s is not: name the GMSACredentialSpec, and leave the contents out: they are filled in", r.ContentsPath, r.NamePath)).At(r.ContentsPath)
}

func (r Request) unauthorized(reference Reference) *decision.Denial {
	if r.ServiceAccount == "" {
		return decision.Forbidden(fmt.Sprintf("%s: a pod without a service account may not use GMSACredentialSpec %q", reference.NamePath, reference.Name)).At(reference.NamePath)
	}
	if use := r.Uses[reference.Name]; !use.Allowed {
		return decision.Forbidden(fmt.Sprintf("%s: service account %q of namespace %q may not use GMSACredentialSpec %q%s: it needs a RoleBinding there, or a ClusterRoleBinding, to a role with verb use on gmsacredentialspecs of windows.k8s.io",
			reference.NamePath, r.ServiceAccount, r.Namespace, reference.Name, detail(use))).At(reference.NamePath)
	}
	return nil
}

func (r Request) unauthorizedUser(reference Reference) *decision.Denial {
	if use := r.UserUses[reference.Name]; !use.Allowed {
		return decision.Forbidden(fmt.Sprintf("%s: user %q may not use GMSACredentialSpec %q in namespace %q%s: in this cluster the user who creates the workload needs verb use on gmsacredentialspecs of windows.k8s.io, as its service account does",
			reference.NamePath, r.User, reference.Name, r.Namespace, detail(use))).At(reference.NamePath)
	}
	return nil
}

func detail(use authority.Answer) string {
	if use.Detail == "" {
		return ""
	}
	return " (" + use.Detail + ")"
}

// mismatch refuses contents that differ from those of the object.
func (r Request) mismatch(reference Reference) *decision.Denial {
	spec := r.Specs[reference.Name]
	if denial := spec.unusable(reference); denial != nil {
		return denial
	}
	if reference.Contents == "" {
		return decision.Invalid(fmt.Sprintf("%s names GMSACredentialSpec %q, and %s was not filled in: the container would run without it; something changed the pod after credence had seen it", reference.NamePath, reference.Name, reference.ContentsPath)).At(reference.ContentsPath)
	}
	err := Same(reference.Contents, spec.Contents)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDiffers):
		return decision.Invalid(fmt.Sprintf("%s is not what GMSACredentialSpec %q holds: leave it out, it is filled in; the pod has %s, the object has %s", reference.ContentsPath, reference.Name, shown(reference.Contents), shown(spec.Contents))).At(reference.ContentsPath)
	}
	return decision.Invalid(fmt.Sprintf("%s can't be compared with GMSACredentialSpec %q, %v: leave it out, it is filled in; the pod has %s, the object has %s", reference.ContentsPath, reference.Name, err, shown(reference.Contents), shown(spec.Contents))).At(reference.ContentsPath)
}

// maxShown is how much of contents a message repeats; most have less than 1 KiB.
const maxShown = 4 << 10

func shown(contents string) string {
	if len(contents) <= maxShown {
		return contents
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(contents[:maxShown], ""), len(contents))
}
