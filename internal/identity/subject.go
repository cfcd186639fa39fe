package identity

import (
	"fmt"
	"strings"
)

// Subject is the sub claim of a workload identity's token:
// gardener.cloud:workloadidentity:<namespace>:<name>:<uid> (GEP-26, "API Changes").
type Subject string

// MaxSubjectLength is the longest sub claim allowed, in ASCII characters (OpenID Connect Core 1.0, section 2).
const MaxSubjectLength = 255

const subjectPrefix = "gardener.cloud:workloadidentity"

// NewSubject returns the subject of a workload identity. It is an error if a part is empty or has a colon, as two identities
// could then have one subject, and if the whole would be longer than MaxSubjectLength or not ASCII; the message gives the
// lengths.
func NewSubject(namespace, name, uid string) (Subject, error) {
	for _, part := range []struct{ name, value string }{{"namespace", namespace}, {"name", name}, {"uid", uid}} {
		if part.value == "" || strings.Contains(part.value, ":") {
			return "", fmt.Errorf("the sub claim needs a %s that is not empty and has no colon, not %q", part.name, part.value)
		}
	}
	s := subjectPrefix + ":" + namespace + ":" + name + ":" + uid
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "", fmt.Errorf("the sub claim %q has a character outside printable ASCII at position %d", s, i)
		}
	}
	if len(s) > MaxSubjectLength {
		return "", fmt.Errorf("the sub claim would be %d characters long, at most %d are allowed: namespace and name have %d characters together, at most %d fit",
			len(s), MaxSubjectLength, len(namespace)+len(name), MaxSubjectLength-(len(s)-len(namespace)-len(name)))
	}
	return Subject(s), nil
}
