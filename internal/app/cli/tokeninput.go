package cli

import (
	"io"
	"strings"

	"github.com/credence-id/credence/internal/relyingparty"
)

// readToken returns the token that an argument names: itself, or with - what standard input holds. White space around it,
// such as the line break of a file, does not count.
func (t *terminal) readToken(argument string) (string, error) {
	if argument != "-" {
		return strings.TrimSpace(argument), nil
	}
	const limit = relyingparty.MaxTokenLength + len("\r\n")
	text, err := io.ReadAll(io.LimitReader(t.in, int64(limit+1)))
	if err != nil {
		return "", &failure{line: "error: read the token from standard input: " + err.Error(), code: exitUsage, err: err}
	}
	if len(text) > limit {
		// Cut off, it could be another token than was given. As it is, it is refused for its length.
		return string(text), nil
	}
	return strings.TrimSpace(string(text)), nil
}

const tokenArgumentHelp = `With - the token is read from standard input. Prefer that: arguments can be seen by
other users of the machine and stay in the history of the shell.`
