package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// looksLikeToken matches a header and a payload that are JSON objects in base64url, up to the token's end or where it was
// cut off; a word that starts like a header and has three to five parts, as encrypted tokens have; and any three parts of
// which the last is long enough to be a signature. The ID of a key has one part, whatever its letters are.
var looksLikeToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*)?` +
	`|\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]+` +
	`|([A-Za-z0-9_-]{10,}\.){2}[A-Za-z0-9_-]{64,}`)

// guard is a writer that redacts tokens and makes control characters visible, whatever an error, a flag or a server has
// put into a message. Writes may come from several goroutines, and each must hold its tokens whole.
type guard struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := io.WriteString(g.to, printable(looksLikeToken.ReplaceAllString(string(p), "[redacted]"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printable escapes what could move the cursor, recolour or reorder a terminal, in the form of JSON and Go strings.
func printable(s string) string {
	var safe strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			safe.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&safe, `\U%08x`, r)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String()
}
