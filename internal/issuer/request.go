package issuer

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/credence-id/credence/internal/identity"
)

// Request is a request for a token that is already authorized.
type Request struct {
	// Identity is the workload identity that the token is for.
	Identity Identity
	// Audiences become the aud claim: at least one, each not empty, in this order.
	Audiences []string
	// TargetAlgorithm is what the target system verifies at least cost; a ring signs the token with it.
	TargetAlgorithm identity.Algorithm
	// AcceptedAlgorithms are all that the target system verifies; an external signer chooses one of them.
	AcceptedAlgorithms []identity.Algorithm
	// Lifetime is how long the token shall be valid; 0 stands for the default.
	Lifetime time.Duration
	// LongestAccepted is the longest lifetime that the target system accepts; 0 stands for any. The token is shortened to it,
	// also below the issuer's own minimum: a longer one would be of no use.
	LongestAccepted time.Duration
	// Context is the object in whose name the token is used, or nil.
	Context *Context
}

// Identity names a workload identity. All fields are required.
type Identity struct {
	Namespace, Name, UID string
}

// Context is the object in whose name a token is used: one field for each kind, exactly one of which is set,
// and its username.
type Context struct {
	ServiceAccount *ServiceAccount
	// Username is the name of the object outside of its cluster; empty: it has none.
	Username string
}

// ServiceAccount names a Kubernetes service account. All fields are required.
type ServiceAccount struct {
	Namespace, Name, UID string
}

func (r Request) check() error {
	if r.Identity.Namespace == "" || r.Identity.Name == "" || r.Identity.UID == "" {
		return errors.New("the workload identity needs a namespace, a name and a uid")
	}
	if r.TargetAlgorithm != identity.RS256 && r.TargetAlgorithm != identity.ES256 {
		return fmt.Errorf("algorithm %q is not supported, use %s or %s", r.TargetAlgorithm, identity.RS256, identity.ES256)
	}
	if len(r.Audiences) == 0 {
		return errors.New("at least one audience is needed")
	}
	for i, audience := range r.Audiences {
		if audience == "" {
			return fmt.Errorf("audiences[%d] is empty", i)
		}
		// JSON cannot carry other bytes, and would replace them by an audience that was not requested.
		if !utf8.ValidString(audience) {
			return fmt.Errorf("audiences[%d] is not valid UTF-8", i)
		}
	}
	if r.Context != nil {
		return r.Context.check()
	}
	return nil
}

// check refuses a context that names nothing: a token without the requested context is worth more than it should be.
func (c Context) check() error {
	if c.ServiceAccount == nil {
		return errors.New("the context names no object")
	}
	for _, field := range []struct{ name, value string }{
		{"namespace", c.ServiceAccount.Namespace}, {"name", c.ServiceAccount.Name}, {"uid", c.ServiceAccount.UID},
	} {
		if field.value == "" || !printable(field.value) {
			return fmt.Errorf("the %s %q of the context's service account is empty or not printable ASCII", field.name, field.value)
		}
	}
	if !printable(c.Username) {
		return fmt.Errorf("the username %q of the context is not printable ASCII", c.Username)
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
