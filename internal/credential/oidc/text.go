package oidc

import (
	"strings"
	"unicode"
)

// textLimit bounds, in characters, what is shown of a text that a provider or a browser has sent.
const textLimit = 300

// plain makes a text from outside fit for a terminal: no control characters, which could move the cursor and forge lines, no
// invisible ones that turn the direction of writing, and not too long.
func plain(text string) string {
	var b strings.Builder
	for i, r := range []rune(text) {
		if i == textLimit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune('�')
		}
	}
	return b.String()
}

// without takes secrets out of a text that repeats them.
func without(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
