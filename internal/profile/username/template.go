// Package username decides which name a service account has outside of its cluster. In go the template of the cluster, what profiles want
// and what they have; out comes a name that no two accounts share, or the reason why an account has no name. It reads no objects, and changes none.
package username

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultTemplate is the template of a cluster that has no other.
const DefaultTemplate = "{name}.{namespace}@" + DefaultHost + "{cluster}"

// DefaultHost is what is before the name of a cluster in names of the default template.
const DefaultHost = "serviceaccounts."

const (
	maxLength = 253
	// foreign are the signs of usernames that no name of a namespace can have.
	foreign = "@._:/+"
)

var (
	grammar   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9@._:/+-]*[A-Za-z0-9])?$`)
	literal   = regexp.MustCompile(`^[A-Za-z0-9@._:/+-]*$`)
	parameter = regexp.MustCompile(`\{[^{}]*\}`)
)

// Template makes the default username of each service account. It has each of {name} and {namespace} once, with a sign between them that a
// namespace's name can't have, so that no two accounts get one name: from the side of the namespace, the first such sign is between them.
type Template struct {
	before, between, after string
	nameFirst              bool
}

// Parse checks a template for the cluster of a name.
func Parse(template, cluster string) (Template, error) {
	if len(template) > maxLength {
		return Template{}, fmt.Errorf("invalid template of %d characters: at most %d", len(template), maxLength)
	}
	if strings.Contains(template, "{cluster}") {
		if problems := validation.IsDNS1123Subdomain(cluster); len(problems) > 0 {
			return Template{}, fmt.Errorf("invalid name of the cluster %q: %s", cluster, problems[0])
		}
		template = strings.ReplaceAll(template, "{cluster}", cluster)
	}
	parameters := parameter.FindAllStringIndex(template, -1)
	if len(parameters) != 2 || strings.Count(template, "{name}") != 1 || strings.Count(template, "{namespace}") != 1 {
		return Template{}, fmt.Errorf("invalid template %q: it must have {name} and {namespace} once each, and no other parameter but {cluster}: two accounts would get one name", template)
	}
	first, second := parameters[0], parameters[1]
	t := Template{
		before: template[:first[0]], between: template[first[1]:second[0]], after: template[second[1]:],
		nameFirst: template[first[0]:first[1]] == "{name}",
	}
	return t, t.check(template)
}

func (t Template) check(template string) error {
	switch {
	case !literal.MatchString(t.before + t.between + t.after):
		return fmt.Errorf("invalid template %q: beside parameters it may have letters, digits and @ . _ : / + -", template)
	case !strings.ContainsAny(t.between, foreign):
		return fmt.Errorf("invalid template %q: two accounts could get one name: between {name} and {namespace} it must have one of @ . _ : / +, which no namespace has in its name", template)
	case !grammar.MatchString(t.before+"x") || !grammar.MatchString("x"+t.after):
		return fmt.Errorf("invalid template %q: it must begin and end with a letter, a digit or a parameter", template)
	case t.canBeOfTheSystem():
		return fmt.Errorf("invalid template %q: it could give an account a name that begins with system:, which are names of the cluster itself", template)
	}
	return nil
}

// canBeOfTheSystem reports whether an account could get a name that begins with "system:".
func (t Template) canBeOfTheSystem() bool {
	const name, namespace = `[a-z0-9.-]+`, `[a-z0-9-]+`
	first, second := namespace, name
	if t.nameFirst {
		first, second = name, namespace
	}
	whole := regexp.QuoteMeta(t.before) + first + regexp.QuoteMeta(t.between) + second + regexp.QuoteMeta(t.after)
	start, _, found := strings.Cut(whole, ":") // parameters have none
	return found && regexp.MustCompile(`(?i)^`+start+`$`).MatchString("system")
}

// Default returns the username that the template gives an account.
func (t Template) Default(namespace, name string) string {
	if t.nameFirst {
		return t.before + name + t.between + namespace + t.after
	}
	return t.before + namespace + t.between + name + t.after
}

// Account returns the account whose default a username is, in whatever case: of any account, whether it exists or not.
func (t Template) Account(username string) (namespace, name string, found bool) {
	rest, found := strings.CutPrefix(Key(username), Key(t.before))
	if !found {
		return "", "", false
	}
	if rest, found = strings.CutSuffix(rest, Key(t.after)); !found {
		return "", "", false
	}
	between := Key(t.between)
	if t.nameFirst {
		// The last foreign sign is in between: neither the namespace nor the rest of between after it has one.
		if last := strings.LastIndexAny(rest, foreign); last >= 0 {
			start := last - strings.LastIndexAny(between, foreign)
			name, namespace, found = splitAt(rest, start, between)
		}
	} else if first := strings.IndexAny(rest, foreign); first >= 0 {
		start := first - strings.IndexAny(between, foreign)
		namespace, name, found = splitAt(rest, start, between)
	}
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}

// splitAt returns what is before and after between, if that is at start.
func splitAt(text string, start int, between string) (before, after string, found bool) {
	if start < 0 || !strings.HasPrefix(text[start:], between) {
		return "", "", false
	}
	return text[:start], text[start+len(between):], true
}

// Key is equal for usernames that could be taken for one another: those that differ in case alone.
func Key(username string) string { return strings.ToLower(username) }

// Check returns why a profile can't set a username, whatever others have; nil if it can.
func Check(username string) error {
	if len(username) > maxLength {
		return fmt.Errorf("it is longer than %d characters", maxLength)
	}
	return CheckGiven(username)
}

// CheckGiven returns why a username can be that of no account; nil if it can. Defaults may be longer than what a profile can set: names of
// accounts and namespaces are never cut.
func CheckGiven(username string) error {
	switch {
	case !grammar.MatchString(username):
		return errors.New("it must begin and end with a letter or digit, with no other signs than @ . _ : / + - between")
	case strings.HasPrefix(Key(username), "system:"):
		return errors.New("names that begin with system: are those of the cluster itself")
	}
	return nil
}
