package connection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/cluster"
)

// contextKind is a kind of object on whose behalf a token can be requested.
type contextKind struct {
	APIVersion, Kind, resource string
	aliases                    []string // how it may be written, as with kubectl
}

// contextKinds is the one place where further kinds are added.
func contextKinds() []contextKind {
	return []contextKind{
		{APIVersion: "v1", Kind: "ServiceAccount", resource: "serviceaccounts", aliases: []string{"serviceaccount", "serviceaccounts", "sa"}},
	}
}

// Object is an object of such a kind, by name.
type Object struct {
	contextKind
	Name string
}

// ParseObject reads KIND/NAME.
func ParseObject(s string) (*Object, error) {
	kind, name, ok := strings.Cut(s, "/")
	if !ok {
		return nil, fmt.Errorf("%q is not of the form serviceaccount/NAME", s)
	}
	var known []string
	for _, candidate := range contextKinds() {
		if slices.Contains(candidate.aliases, strings.ToLower(kind)) {
			return &Object{contextKind: candidate, Name: name}, cluster.CheckName(name)
		}
		known = append(known, candidate.aliases[0])
	}
	return nil, fmt.Errorf("kind %q is not supported, supported is %s", kind, strings.Join(known, ", "))
}
