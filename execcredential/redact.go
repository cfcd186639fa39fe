package execcredential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	stderrTail = 4 << 10
	redacted   = "[redacted]"
)

// sanitize replaces what would change the state of a terminal: everything but letters, marks, numbers, punctuation, symbols and
// white space becomes its code point, as in U+001B.
func sanitize(text string) string {
	safe := func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) || r >= '\t' && r <= '\r'
	}
	if strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if safe(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "%U", r)
		}
	}
	return b.String()
}

var (
	pemBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`)
	// jwt matches a header and a payload that are JSON objects in base64url, up to the token's end or where it was cut off; a word that starts
	// like a header and has three to five parts, as encrypted tokens have; and any three parts of which the last is long enough to be a
	// signature. The ID of a key has one part, whatever its letters are.
	jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*)?` +
		`|\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]+` +
		`|([A-Za-z0-9_-]{10,}\.){2}[A-Za-z0-9_-]{64,}`)
	headerValue = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`)
	namedSecret = regexp.MustCompile(`(?i)\b([a-z0-9_-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|private[_-]?key|clientkeydata|assertion|verifier|code))("?\s*[=:]\s*"?)[^\s"',;&]{4,}`)
	longWord    = regexp.MustCompile(`[A-Za-z0-9._~+/=-]{12,}`)
	userOfURL   = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)

	// secretName is a variable whose name indicates that its value is a secret, and not where one is (TOKEN_FILE, TOKEN_URL).
	secretName = regexp.MustCompile(`(?i)(token|secret|password|passwd|passphrase|api[_-]?key|assertion|verifier|(^|[_-])(pass|pwd|pin|pat|key|jwt|cookie|code))([_-]?[0-9]+)?$`)
)

// secretValues are the values of the variables whose names say that they are secret, or that a policy names. A short word that only looks
// so would be taken out of every sentence.
func secretValues(env []EnvVar, policies ...Policy) []string {
	var values []string
	for _, e := range env {
		marked := slices.ContainsFunc(policies, func(p Policy) bool { return slices.Contains(p.SecretEnv, e.Name) })
		if marked && e.Value != "" || len(e.Value) >= 4 && secretName.MatchString(e.Name) {
			values = append(values, e.Value)
		}
	}
	return values
}

// tail keeps the end of what is written to it.
type tail struct{ end []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	// Twice the length is kept, so that a secret that begins before the tail is still recognized.
	if extra := len(t.end) - 2*stderrTail; extra > 0 {
		t.end = append(t.end[:0], t.end[extra:]...)
	}
	return len(p), nil
}

// redact returns the end of standard error without what looks like a secret, without the secrets that are known, and without any long word
// that standard output has too.
func (t *tail) redact(secrets, args []string, stdout []byte) string {
	text := strings.ToValidUTF8(string(t.end), "\uFFFD")
	cut := len(t.end) >= 2*stderrTail
	text = pemBlock.ReplaceAllString(text, redacted)
	var known []string
	for _, secret := range secrets {
		known = append(known, secret, redacted)
	}
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && len(value) >= 6 && namedSecret.MatchString(arg) {
			known = append(known, value, redacted)
		}
	}
	for _, word := range longWord.FindAllString(string(stdout[:min(len(stdout), 64<<10)]), 200) {
		known = append(known, word, redacted)
	}
	text = strings.NewReplacer(known...).Replace(text)
	text = userOfURL.ReplaceAllString(text, "://"+redacted+"@")
	text = jwt.ReplaceAllString(text, redacted)
	text = headerValue.ReplaceAllString(text, "$1 "+redacted)
	text = namedSecret.ReplaceAllString(text, "$1$2"+redacted)
	if len(text) > stderrTail {
		text, cut = strings.ToValidUTF8(text[len(text)-stderrTail:], ""), true
	}
	text = strings.TrimSpace(sanitize(text))
	if cut && text != "" {
		// The first word may be the rest of a secret whose beginning is gone.
		if _, rest, ok := strings.Cut(text, " "); ok {
			text = rest
		} else {
			text = redacted
		}
		text = "…" + text
	}
	return text
}
