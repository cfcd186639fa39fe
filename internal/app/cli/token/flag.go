package token

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/relyingparty"
)

// signedToken is the shape of a token in JWS compact serialization (RFC 7515, section 7.1).
var signedToken = regexp.MustCompile(`^[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]*$`)

// FromFlag returns the token that the flag --token names: itself, what standard input holds (-), or what a file holds.
func FromFlag(cmd *cobra.Command, in io.Reader, value string) (string, error) {
	if value == "-" {
		return Read(in, value)
	}
	const limit = relyingparty.MaxTokenLength + len("\r\n")
	file, err := os.Open(value)
	if err != nil {
		if token := strings.TrimSpace(value); signedToken.MatchString(token) {
			return token, nil
		}
		// The argument may be most of a token, so it is not repeated.
		return "", command.Usage(cmd, "--token is neither a token, nor -, nor a file that can be read")
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(limit+1)))
	if err != nil {
		return "", command.Usage(cmd, "--token: the file cannot be read")
	}
	return strings.TrimSpace(string(text)), nil
}
