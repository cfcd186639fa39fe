package issuer

import (
	"errors"
	"fmt"
	"slices"
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
	// Cluster is the workload cluster that the token is for; nil: the issuer's own. A service account as the context is of this cluster.
	Cluster *Cluster
	// Context is the object in whose name the token is used, or nil.
	Context *Context
}

// Cluster names a workload cluster. Both fields are required.
type Cluster struct {
	Name, UID string
}

// Identity names a workload identity. All fields are required.
type Identity struct {
	Namespace, Name, UID string
}

// Context is the object in whose name a token is used: a service account and its username, or another object.
type Context struct {
	ServiceAccount *ServiceAccount
	// Pod is the one pod of the service account that the token is for; nil: it is for the account.
	Pod *Pod
	// Objects are the object, and those that follow from it, each under a claim of its own.
	Objects []Object
	// Username is the name of the object outside of its cluster; empty: it has none.
	Username string
}

// ServiceAccount names a Kubernetes service account. All fields are required.
type ServiceAccount struct {
	Namespace, Name, UID string
}

// Pod names a pod, and the node that it runs on. Both have a name, and the pod has a uid.
type Pod struct {
	Name, UID string
	Node      Node
}

// Node names a node. Its uid may be empty, as not every token of a pod has it.
type Node struct {
	Name, UID string
}

// Object names an object of the API under a claim. All fields are required, but for the namespace of an object without one.
type Object struct {
	Claim, Namespace, Name, UID string
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
	if r.Cluster != nil && (r.Cluster.Name == "" || r.Cluster.UID == "") {
		return errors.New("the workload cluster needs a name and a uid")
	}
	if r.Context != nil {
		return r.Context.check()
	}
	return nil
}

// check refuses a context that names nothing: a token without the requested context is worth more than it should be.
func (c Context) check() error {
	if len(c.Objects) > 0 {
		return c.checkObjects()
	}
	if c.ServiceAccount == nil {
		return errors.New("the context names no object")
	}
	account := c.ServiceAccount
	if err := printable("service account", [][2]string{{"namespace", account.Namespace}, {"name", account.Name}, {"uid", account.UID}}); err != nil {
		return err
	}
	if !identity.Printable(c.Username) {
		return fmt.Errorf("the username %q of the context is not printable ASCII", c.Username)
	}
	if c.Pod != nil {
		return c.Pod.check()
	}
	return nil
}

func (p Pod) check() error {
	if err := printable("pod", [][2]string{{"name", p.Name}, {"uid", p.UID}, {"node", p.Node.Name}}); err != nil {
		return err
	}
	if !identity.Printable(p.Node.UID) {
		return fmt.Errorf("the uid %q of the node of the context's pod is not printable ASCII", p.Node.UID)
	}
	return nil
}

// printable refuses fields, each a name and a value, that a token cannot have.
func printable(of string, fields [][2]string) error {
	for _, field := range fields {
		if field[1] == "" || !identity.Printable(field[1]) {
			return fmt.Errorf("the %s %q of the context's %s is empty or not printable ASCII", field[0], field[1], of)
		}
	}
	return nil
}

// checkObjects refuses claims that would replace others.
func (c Context) checkObjects() error {
	if c.ServiceAccount != nil || c.Pod != nil || c.Username != "" {
		return errors.New("the context names a service account and another object")
	}
	taken := []string{workloadIdentityClaim, seedClaim, gardenClaim}
	for _, object := range c.Objects {
		if slices.Contains(taken, object.Claim) {
			return fmt.Errorf("the claim %q of the context stands for something else", object.Claim)
		}
		taken = append(taken, object.Claim)
		for _, value := range []string{object.Claim, object.Name, object.UID} {
			if value == "" || !identity.Printable(value) {
				return fmt.Errorf("the claim, the name or the uid of the context's object %+v is empty or not printable ASCII", object)
			}
		}
		if !identity.Printable(object.Namespace) {
			return fmt.Errorf("the namespace %q of the context's object is not printable ASCII", object.Namespace)
		}
	}
	return nil
}
