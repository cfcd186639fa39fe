package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// contextKind is a kind of object on whose behalf a token can be requested.
type contextKind struct {
	apiVersion, kind, resource string
	aliases                    []string // how it may be written, as with kubectl
}

// contextKinds is the one place where further kinds are added.
func contextKinds() []contextKind {
	return []contextKind{
		{apiVersion: "v1", kind: "ServiceAccount", resource: "serviceaccounts", aliases: []string{"serviceaccount", "serviceaccounts", "sa"}},
	}
}

// contextReference is an object of such a kind, by name.
type contextReference struct {
	contextKind
	name string
}

// parseContext reads KIND/NAME.
func parseContext(s string) (*contextReference, error) {
	kind, name, ok := strings.Cut(s, "/")
	if !ok {
		return nil, fmt.Errorf("%q is not of the form serviceaccount/NAME", s)
	}
	var known []string
	for _, candidate := range contextKinds() {
		if slices.Contains(candidate.aliases, strings.ToLower(kind)) {
			return &contextReference{contextKind: candidate, name: name}, checkName(name)
		}
		known = append(known, candidate.aliases[0])
	}
	return nil, fmt.Errorf("kind %q is not supported, supported is %s", kind, strings.Join(known, ", "))
}

// checkName refuses what would be another path than the one of an object.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if reasons := content.IsPathSegmentName(name); len(reasons) > 0 {
		return fmt.Errorf("%q is not a name: it %s", name, strings.Join(reasons, ", "))
	}
	return nil
}
