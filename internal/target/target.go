// Package target is the shape of a target system: what it accepts, and what a workload needs to present a token to it. In
// goes the providerConfig of an identity, out comes an Injection: keys of a Secret, variables and files of a pod. It is pure,
// and knows no target system: those are its subpackages, and package targets is the list of them.
package target

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
)

// Adapter is one target system. It has no state.
type Adapter interface {
	// Type is the value of spec.targetSystem.type, such as aws.
	Type() string
	// Limits are what the target system accepts.
	Limits() Limits
	// Parse checks a providerConfig: JSON, or empty. Unknown fields and duplicate keys are errors, which
	// name fields below path. The Config is nil if there are any.
	Parse(providerConfig []byte, path *field.Path) (Config, field.ErrorList)
}

// Config is a providerConfig that was checked.
type Config interface {
	// Injection is what a workload needs besides the token that is mounted in place.
	Injection(place Place) Injection
	// Account returns the fields that must never change, such as the tenant: another account is another identity.
	Account() []Fixed
	// Audiences are those that the target system expects unless it was set up otherwise, at least one of them; empty if any
	// may do.
	Audiences() []string
}

// Warner is a Config that knows settings which are accepted, and will hardly do.
type Warner interface {
	Warnings() []string
}

// Limits are what a target system accepts; zero values limit nothing.
type Limits struct {
	// Algorithms are the signatures that it accepts, the cheapest first: a ring signs with that.
	Algorithms []identity.Algorithm
	// Lifetime is the longest that a token may be valid.
	Lifetime time.Duration
	// Subject is the greatest length of the sub claim, in bytes.
	Subject int
	// Audiences is how many there may be, Audience the greatest length of one, in characters.
	Audiences, Audience int
	// Untrusted returns what is wrong with an audience that no trust can be set up for, or an empty text; nil: any will do.
	Untrusted func(audience string) string
}

// Fixed is a value of a providerConfig that must never change; empty while it is not set. Bindings store it: no later version may write it in
// another way.
type Fixed struct {
	Path  *field.Path
	Value string
	// Host reports whether tokens are sent to the value: then it can't be set later, either.
	Host bool
}

// Move is a fixed value that another configuration has otherwise, or lacks.
type Move struct {
	Path    *field.Path
	Was, Is string
}

// Moved returns which fixed values of an account another configuration does not share; either may be nil. Without any, both are of one
// account, as far as the first has one.
func Moved(from, to Config) []Move {
	if from == nil {
		return nil
	}
	var moved []Move
	for _, was := range from.Account() {
		if is := fixed(to, was.Path); was.Value != "" && is != was.Value {
			moved = append(moved, Move{Path: was.Path, Was: was.Value, Is: is})
		}
	}
	return moved
}

// Hosts returns the hosts that tokens would be sent to by a configuration, and by another one were sent to none; either may be nil.
func Hosts(from, to Config) []Fixed {
	if to == nil {
		return nil
	}
	return slices.DeleteFunc(to.Account(), func(is Fixed) bool { return !is.Host || is.Value == "" || fixed(from, is.Path) != "" })
}

// fixed is the fixed value of a configuration at a path, or empty.
func fixed(of Config, path *field.Path) string {
	if of == nil {
		return ""
	}
	account := of.Account()
	if i := slices.IndexFunc(account, func(f Fixed) bool { return f.Path.String() == path.String() }); i >= 0 {
		return account[i].Value
	}
	return ""
}

// Injection is what a workload needs besides its token.
type Injection struct {
	// Keys are further keys of the Secret that carries the token.
	Keys []Key
	// Mounts are the names of those keys that a pod needs as files beside its token.
	Mounts []string
	// Env are variables of a pod's containers.
	Env []Variable
}

// Key is a key of a Secret, or a file.
type Key struct {
	Name, Content string
}

// Variable is a variable of a container's environment.
type Variable struct {
	Name, Value string
	// Default reports whether a value of the container's own takes its place, without a warning.
	Default bool
	// Alias is another name of a default: a container that sets either of the two is given neither.
	Alias string
}
