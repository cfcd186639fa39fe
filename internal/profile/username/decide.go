package username

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Claim is what a profile has, and what it wants.
type Claim struct {
	Namespace, Name string
	UID             string
	Created         time.Time
	// Explicit is spec.username; empty: the default of the cluster's template is wanted.
	Explicit string
	// Has is the username that the profile was given before; empty: none.
	Has string
}

// before reports whether c goes before another claim of the same name: the older profile does, of two of one second the one with the lower
// uid.
func (c Claim) before(other Claim) bool {
	if !c.Created.Equal(other.Created) {
		return c.Created.Before(other.Created)
	}
	return c.UID < other.UID
}

func (c Claim) String() string { return "ServiceAccountProfile " + c.Namespace + "/" + c.Name }

// Reasons of decisions.
const (
	Unique   = "UsernameUnique"   // the profile has the name that it wants
	Kept     = "UsernameKept"     // it has the name that it was given first, and wants another one by now
	Taken    = "UsernameTaken"    // it has none: another profile has the name
	Reserved = "UsernameReserved" // it has none: the name is the default of another account
	Invalid  = "UsernameInvalid"  // it has none: no account can have the name
)

// Decision is the username of a profile.
type Decision struct {
	Username string // empty: none
	Reason   string
	Message  string
}

// Wanted returns the username that a profile wants.
func (t Template) Wanted(c Claim) string {
	if c.Explicit != "" {
		return c.Explicit
	}
	return t.Default(c.Namespace, c.Name)
}

// Decide returns the username of a profile. Others are the claims of other profiles that have or want a name that this one has or wants.
//
// A profile keeps the name that it was given for as long as it exists, whatever becomes of its spec and of the template: relying parties
// know it by that name. The first profile has a name: the one that it was given to, else the oldest that wants it.
func (t Template) Decide(own Claim, others []Claim) Decision {
	wanted := t.Wanted(own)
	if own.Has != "" && own.Holds(others) {
		if own.Has == wanted {
			return Decision{own.Has, Unique, fmt.Sprintf("no other account has the username %s", own.Has)}
		}
		return Decision{own.Has, Kept, fmt.Sprintf("the username stays %s, which relying parties know, although %s is wanted now: to change it, delete the profile and create it again", own.Has, wanted)}
	}
	if reason, message := t.refuse(own); reason != "" {
		return Decision{"", reason, message}
	}
	for _, other := range others {
		if Key(other.Has) == Key(wanted) {
			return Decision{"", Taken, fmt.Sprintf("%s has the username %s: set another spec.username", other, other.Has)}
		}
	}
	for _, other := range others {
		if reason, _ := t.refuse(other); other.Has == "" && Key(t.Wanted(other)) == Key(wanted) && reason == "" && other.before(own) {
			return Decision{"", Taken, fmt.Sprintf("%s is older, and wants the username %s: set another spec.username", other, t.Wanted(other))}
		}
	}
	return Decision{wanted, Unique, fmt.Sprintf("no other account has the username %s", wanted)}
}

// Holds reports whether the name that a profile has is its own, beside the claims of other profiles.
func (c Claim) Holds(others []Claim) bool {
	return CheckGiven(c.Has) == nil && !slices.ContainsFunc(others, func(other Claim) bool { return Key(other.Has) == Key(c.Has) && other.before(c) })
}

// refuse returns why a profile can't get the name that it sets; no reason if it can, or sets none.
func (t Template) refuse(c Claim) (reason, message string) {
	if c.Explicit == "" {
		return "", ""
	}
	if err := Check(c.Explicit); err != nil {
		return Invalid, fmt.Sprintf("spec.username: invalid %q: %v", c.Explicit, err)
	}
	if namespace, name, found := t.Account(c.Explicit); found && (namespace != c.Namespace || name != c.Name) {
		return Reserved, fmt.Sprintf("spec.username: %s is the default of service account %s of namespace %s, whether it exists or not: set another one", c.Explicit, name, namespace)
	}
	if strings.Contains(Key(c.Explicit), "@"+DefaultHost) && Key(c.Explicit) != Key(t.Default(c.Namespace, c.Name)) {
		return Reserved, fmt.Sprintf("spec.username: %s could be the default of a service account of another cluster: set one without @%s", c.Explicit, DefaultHost)
	}
	return "", ""
}
