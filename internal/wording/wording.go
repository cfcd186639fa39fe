package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// looksLikeToken matches a header and a payload that are JSON objects in base64url, up to the token's end or where it was
// cut off; a word that starts like a header and has three to five parts, as encrypted tokens have; and any three parts of
// which the last is long enough to be a signature. The ID of a key has one part, whatever its letters are.
var looksLikeToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*)?` +
	`|\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]+` +
	`|([A-Za-z0-9_-]{10,}\.){2}[A-Za-z0-9_-]{64,}`)

// Redact hides what looks like a token.
func Redact(s string) string { return looksLikeToken.ReplaceAllString(s, "[redacted]") }

// Printable escapes what could move the cursor, recolour or reorder a terminal, in the form of JSON and Go strings.
func Printable(s string) string {
	harmless := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !harmless(r) }) {
		return s
	}
	var safe strings.Builder
	for _, r := range s {
		switch {
		case harmless(r):
			safe.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&safe, `\U%08x`, r)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String()
}

// OneLine is printable text that stays in its line and cell.
func OneLine(s string) string {
	return Printable(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s))
}

// Continued indents all lines but the first: what others have put into a text, such as the names in a certificate, begins no line.
func Continued(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// Moment words a time for people, such as 2026-07-01T12:00:00Z (5m ago).
func Moment(t, now time.Time) string {
	if t.IsZero() {
		return "(not set)"
	}
	distance := "in " + duration.HumanDuration(t.Sub(now))
	if t.Before(now) {
		distance = duration.HumanDuration(now.Sub(t)) + " ago"
	}
	return fmt.Sprintf("%s (%s)", t.Format(time.RFC3339), distance)
}

// Instant words a time as moment does, in UTC, or missing without one.
func Instant(t *metav1.Time, now time.Time, missing string) string {
	if t == nil || t.IsZero() {
		return missing
	}
	return Moment(t.UTC(), now)
}

// Age words a time by its distance alone, such as 5m ago.
func Age(t *metav1.Time, now time.Time) string {
	switch {
	case t == nil || t.IsZero():
		return "-"
	case t.Time.Before(now):
		return duration.HumanDuration(now.Sub(t.Time)) + " ago"
	default:
		return "in " + duration.HumanDuration(t.Time.Sub(now))
	}
}

// Plural words a count with its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Some lists the first of many, and the number of the others.
func Some(things []string) string {
	const shown = 3
	if len(things) <= shown {
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(things[:shown], ", "), len(things)-shown)
}

// Quoted lists values, each in quotes.
func Quoted(values ...string) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprintf("%q", value)
	}
	return strings.Join(words, ", ")
}

// plain are the words that need no quotes in a shell, nor are read as an option.
var plain = regexp.MustCompile(`^[\w./][\w./:=@%+,-]*$`)

// Argument is a word as one argument of a command for a POSIX shell.
func Argument(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// OrDash is a text, or - in place of none.
func OrDash(s string) string {
	return cmp.Or(s, "-")
}
