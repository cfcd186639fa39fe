package endpoint

import (
	"fmt"
	"strings"
)

// Pipe is a named pipe of this machine, by its path, which begins with \\.\pipe\.
type Pipe string

const (
	pipes = `\\.\pipe\`
	// longestPipe is what Windows takes, with pipes.
	longestPipe = 256
)

// String implements Endpoint.
func (p Pipe) String() string { return "npipe://" + strings.ReplaceAll(string(p), `\`, "/") }

// parsePipe reads the path of a pipe with either kind of slash, and with this machine's name (.) after two slashes or after none, as kubelets
// take it.
func parsePipe(text, place string) (Endpoint, error) {
	name, found := strings.CutPrefix(strings.TrimPrefix(strings.ReplaceAll(place, "/", `\`), `\\`), strings.TrimPrefix(pipes, `\\`))
	p := Pipe(pipes + name)
	for _, part := range strings.Split(name, `\`) {
		found = found && part != "" && part != "." && part != ".."
	}
	if !found || len(p) > longestPipe {
		return nil, fmt.Errorf("%s is not a named pipe of this machine: give npipe:////./pipe/NAME, with at most %d bytes from the slashes on", text, longestPipe)
	}
	return p, nil
}
