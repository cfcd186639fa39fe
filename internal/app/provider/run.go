package provider

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/version"
)

// ExecInfo is what the client of this process requests.
func ExecInfo() (credential.ExecInfo, error) {
	text, present := os.LookupEnv(credential.EnvironmentVariable)
	return credential.ParseExecInfo(text, present, term.IsTerminal(int(os.Stdin.Fd())))
}

// exitNoProgram is the exit code for a file that cannot be used, as in the command line of Credence.
const exitNoProgram = 2

// Run is the small program: it writes what is kept for a command line, if it is fresh, and its version for --version; else it becomes
// "credence credential …", which does everything else. It returns the exit code. now is the clock.
func Run(args []string, out, errOut io.Writer, now func() time.Time) int {
	if len(args) > 0 && args[0] == "--version" {
		fmt.Fprintln(out, "credence-credential", version.Read())
		return 0
	}
	if text, ok := warm(args, Here(now)); ok {
		if _, err := out.Write(text); err != nil {
			fmt.Fprintf(errOut, "error: write the credential: %v\n", err)
			return 1
		}
		return 0
	}
	if len(args) > 0 && args[0] == "credential" {
		args = args[1:]
	}
	program, err := findProgram()
	if err == nil {
		var code int
		if code, err = become(program, append([]string{program, "credential"}, args...)); err == nil {
			return code
		}
	}
	fmt.Fprintf(errOut, "error: %v\n", err)
	return exitNoProgram
}

// warm returns what is printed without any request. Errors are not reported here.
func warm(args []string, place Place) ([]byte, bool) {
	info, err := ExecInfo()
	if err != nil {
		return nil, false
	}
	line, err := ParseLine(args)
	if err != nil {
		return nil, false
	}
	chosen, err := line.Choose(place, info)
	if err != nil {
		return nil, false
	}
	provider, err := chosen.Provider(line.CacheFolder, info, place.Now, silent{})
	if err != nil {
		return nil, false
	}
	key := chosen.Key()
	var got credential.Credential
	if _, isFile := line.Settings.(*tokenFile); isFile {
		// A file is at hand always.
		if got, err = provider.Serve(context.Background(), chosen, info); err != nil {
			return nil, false
		}
	} else {
		var ok bool
		if got, ok = provider.Kept(key, info); !ok {
			return nil, false
		}
	}
	text, err := got.Encode(info.APIVersion)
	return text, err == nil
}

// silent is a terminal that prints nothing.
type silent struct{}

func (silent) Notice(string, ...any) {}

func (silent) OpenURL(string) error { return os.ErrInvalid }
