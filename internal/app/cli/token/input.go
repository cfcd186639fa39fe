package token

import (
	"io"
	"os"
	"strings"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/relyingparty"
)

// Read returns the token that an argument names: itself, with - what standard input holds, or what a file holds; no
// token has a slash, and the path of a file must. White space around it, such as the line break of a file, does not count.
func Read(in io.Reader, argument string) (string, error) {
	if strings.ContainsAny(argument, `/\`) {
		file, err := os.Open(argument)
		if err != nil {
			return "", &command.Failure{Line: "error: read the token: " + err.Error(), Code: command.ExitUsage, Err: err}
		}
		defer func() { _ = file.Close() }()
		return readWhole(file, argument)
	}
	if argument != "-" {
		return strings.TrimSpace(argument), nil
	}
	return readWhole(in, "standard input")
}

func readWhole(from io.Reader, name string) (string, error) {
	const limit = relyingparty.MaxTokenLength + len("\r\n")
	text, err := io.ReadAll(io.LimitReader(from, int64(limit+1)))
	if err != nil {
		return "", &command.Failure{Line: "error: read the token from " + name + ": " + err.Error(), Code: command.ExitUsage, Err: err}
	}
	if len(text) > limit {
		// Cut off, it could be another token than was given. As it is, it is refused for its length.
		return string(text), nil
	}
	return strings.TrimSpace(string(text)), nil
}

const tokenArgumentHelp = `With - the token is read from standard input. Prefer that: arguments can be seen by
other users of the machine and stay in the history of the shell. An argument with a
slash is the path of a file that holds the token, such as one mounted into a pod.`
