package identity

import "strings"

// Printable reports whether a text that becomes a claim is printable ASCII without spaces.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
