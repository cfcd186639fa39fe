// Package clouderror finds the errors by which target systems refuse a token. In go what a log shows, a code or a whole message,
// and the errors that are known; out come the causes, and what to check. It knows no target system, and makes no requests.
package clouderror

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Fact is a value of an identity that an error is about.
type Fact string

// The facts.
const (
	Issuer    Fact = "issuer"
	Subject   Fact = "subject"
	Audiences Fact = "audiences"
	Config    Fact = "providerConfig"
	Lifetime  Fact = "lifetime"
	Keys      Fact = "keys"
)

// Explanation is one error of one system, and what to do about it.
type Explanation struct {
	// System is the name of the system that refuses.
	System string `json:"system"`
	// Code is the error's name: its code, or its fixed words.
	Code string `json:"code"`
	// Cause describes the fault, in a sentence.
	Cause string `json:"cause"`
	// Checks are what to look at, the likeliest first.
	Checks []string `json:"checks"`
	// Facts are the values of the identity to compare, the likeliest first.
	Facts []Fact `json:"facts"`

	seen *regexp.Regexp
}

// maxText bounds what is searched: a person pastes it.
const maxText = 64 << 10

// Find returns those of the known errors that are in a text, the most specific first.
func Find(text string, known []Explanation) []Explanation {
	if len(text) > maxText {
		text = text[:maxText]
	}
	type found struct {
		Explanation
		length int
	}
	var all []found
	for _, e := range known {
		if match := e.seen.FindString(text); match != "" {
			all = append(all, found{e, len(match)})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.length, a.length) })
	var explanations []Explanation
	for _, f := range all {
		explanations = append(explanations, f.Explanation)
	}
	return explanations
}

// Entry makes one error of a system. seen are alternatives, found in any case and with any white space; the code is one of them.
func Entry(code, cause string, facts []Fact, checks []string, seen ...string) Explanation {
	alternatives := []string{phrase(code)}
	for _, s := range seen {
		alternatives = append(alternatives, phrase(s))
	}
	return Explanation{Code: code, Cause: cause, Checks: checks, Facts: facts, seen: regexp.MustCompile(`(?i)` + strings.Join(alternatives, "|"))}
}

// NotGiven are the checks where an SDK found none of the variables that a container with an identity has.
func NotGiven(variables string) []string {
	return []string{
		"credence explain pod NAME -n NAMESPACE: what the pod gets, and why not",
		"spec.serviceAccountName of the pod, which is default without one, the annotation of that service account, and the label of the namespace",
		"a pod that is older than the annotation or the label gets nothing: create it anew",
		variables + " in the container: an SDK that finds them does not say this, unless it is too old to know them",
	}
}

// phrase matches words with any white space between them; a … stands for up to 300 characters. A code of digits or letters
// must end where it ends: AADSTS70021 is not AADSTS700211.
func phrase(words string) string {
	parts := strings.Split(words, "…")
	for i, part := range parts {
		fields := strings.Fields(part)
		for j, field := range fields {
			fields[j] = regexp.QuoteMeta(field)
		}
		parts[i] = strings.Join(fields, `\s+`)
	}
	pattern := strings.Join(parts, `[\s\S]{0,300}?`)
	if isWord(words[0]) {
		pattern = `\b` + pattern
	}
	if isWord(words[len(words)-1]) {
		pattern += `\b`
	}
	return pattern
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
