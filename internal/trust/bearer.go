package trust

import (
	"errors"
	"fmt"
	"strings"
)

// Bearer is whose tokens of an identity are trusted. The zero value is anyone's.
type Bearer struct {
	// Cluster is the WorkloadCluster whose agent was given the token; empty, with an account: none, as for accounts of the identity cluster.
	Cluster string
	// Namespace and Account are the service account in whose name the token is; empty: any, or none.
	Namespace, Account string
	// Object is the object of a ContextKind on whose behalf the token is; zero: any, or none.
	Object ContextObject
}

// ContextObject is an object of a ContextKind.
type ContextObject struct {
	// Claim is the member of gardener.cloud that names the object, UID is that of the object.
	Claim, UID string
	// Title is the object for people.
	Title string
}

// Claim is a member of a token, by the names that lead to it, and its value.
type Claim struct {
	Path  []string
	Value string
}

// The members of a token that claims of bearers are in.
const gardener, kubernetes = "gardener.cloud", "kubernetes.io"

// ClusterClaim is the member of gardener.cloud that names the cluster in all tokens that it has.
const ClusterClaim = "seed"

// Claims are those that a token must have. An account of a cluster is asserted by its agent, and accounts of two clusters can have one name:
// so both claims name the cluster.
func (b Bearer) Claims() []Claim {
	var claims []Claim
	if b.Cluster != "" {
		claims = append(claims, Claim{[]string{gardener, ClusterClaim, "name"}, b.Cluster})
	}
	if b.Account != "" {
		claims = append(claims, Claim{[]string{kubernetes, "namespace"}, b.Namespace}, Claim{[]string{kubernetes, "serviceaccount", "name"}, b.Account})
	}
	if b.Cluster != "" && b.Account != "" {
		claims = append(claims, Claim{[]string{kubernetes, "cluster", "name"}, b.Cluster})
	}
	if b.Object.Claim != "" { // names can come back, the uid can't
		claims = append(claims, Claim{[]string{gardener, b.Object.Claim, "uid"}, b.Object.UID})
	}
	return claims
}

// Absent are the claims that a token must not have: by them it would be of an account of another cluster.
func (b Bearer) Absent() [][]string {
	if b.Account == "" || b.Cluster != "" {
		return nil
	}
	return [][]string{{gardener, ClusterClaim}, {kubernetes, "cluster"}}
}

// String is the bearer for people.
func (b Bearer) String() string {
	switch {
	case b.Object.Claim != "" && b.Cluster != "":
		return fmt.Sprintf("%s in WorkloadCluster %s", b.Object.Title, b.Cluster)
	case b.Object.Claim != "":
		return b.Object.Title
	case b.Account == "":
		return "WorkloadCluster " + b.Cluster
	case b.Cluster == "":
		return fmt.Sprintf("service account %s/%s of the identity cluster", b.Namespace, b.Account)
	}
	return fmt.Sprintf("service account %s/%s of WorkloadCluster %s, as its agent asserts", b.Namespace, b.Account, b.Cluster)
}

// Condition is an expression in CEL that is true for tokens of other identities, and for those of this identity that are its bearer's. The
// variable has the claims. A token without one of them is refused, as the expression can't be evaluated.
func (i Identity) Condition(variable string) string {
	member := func(path []string) string {
		return fmt.Sprintf("%s[%q]", variable, path[0]) + strings.Join(append([]string{""}, path[1:]...), ".")
	}
	var parts []string
	for _, claim := range i.Bearer.Claims() {
		parts = append(parts, fmt.Sprintf("%s == %q", member(claim.Path), claim.Value))
	}
	for _, path := range i.Bearer.Absent() {
		parts = append(parts, fmt.Sprintf("!(%q in %s)", path[1], member(path[:1])))
	}
	return fmt.Sprintf("%s.sub != %q || %s", variable, i.Subject, strings.Join(parts, " && "))
}

// ErrAbsent is for systems that can't require that a claim is absent.
var ErrAbsent = errors.New("it can't require that a token has no cluster, as an account of the identity cluster needs it: name the cluster of the account, or trust an identity that no other cluster may have")
