package credential

import (
	"strings"
	"unicode"
)

// Plain makes a text from outside fit for a terminal: one line, no control characters, which could move the cursor and forge
// lines, no invisible ones that turn the direction of writing, and at most as many characters as are given.
func Plain(text string, most int) string {
	var b strings.Builder
	for i, r := range []rune(text) {
		if i == most {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ReplacementChar)
		}
	}
	return b.String()
}
