package execcredential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/term"
)

const (
	defaultTimeout            = 60 * time.Second
	defaultInteractiveTimeout = 10 * time.Minute

	outputLimit = 1 << 20

	// drain is how long standard output of a program that has ended may be held open by what it started, and how long a program may
	// take to end after it was signaled to.
	drain = 500 * time.Millisecond
)

var (
	errTimedOut = errors.New("the program took too long")
	errOverflow = errors.New("the program wrote too much")
)

// program is a Provider that runs an executable.
type program struct {
	config             Config
	policy             Policy
	timeout            time.Duration // 0 for none
	interactiveTimeout time.Duration
	stdin              *os.File
	stderr             io.Writer
	messages           *lenient // to stderr
	clock              Clock

	// Queries of the operating system.
	isTerminal func(*os.File) bool
	environ    func() []string
	limits     limits
}

func newProgram(c Config, o Options) *program {
	p := &program{
		config:             c,
		policy:             o.Policy,
		timeout:            max(cmp.Or(c.Timeout, o.Timeout, defaultTimeout), 0),
		interactiveTimeout: max(cmp.Or(c.InteractiveTimeout, o.InteractiveTimeout, defaultInteractiveTimeout), 0),
		stdin:              o.Stdin,
		stderr:             o.Stderr,
		clock:              o.Clock,
		isTerminal:         func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) },
		environ:            os.Environ,
		limits:             systemLimits(),
	}
	if p.stdin == nil {
		p.stdin = os.Stdin
	}
	if p.stderr == nil {
		p.stderr = os.Stderr
	}
	p.messages = newLenient(p.stderr)
	return p
}

// Credential runs the program once.
func (p *program) Credential(ctx context.Context) (*Credential, error) {
	interactive, err := p.interactive()
	if err != nil {
		return nil, err
	}
	timeout := p.timeout
	if interactive {
		timeout = p.interactiveTimeout
		// Before the program is looked at: what it is may change while another one has the terminal.
		done, err := prompts.take(ctx, p.stdin)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	command, err := p.command(interactive)
	if err != nil {
		return nil, err
	}
	stdout, stderr, err := p.run(ctx, command, interactive, timeout)
	tail := stderr.redact(secretValues(p.config.Env, p.policy, p.config.Policy), p.config.Args, stdout)
	switch e := (*exec.ExitError)(nil); {
	case errors.Is(err, errOverflow):
		return nil, &OutputError{Command: p.config.Command, Problem: OutputTooLarge, Detail: fmt.Sprintf("more than %d bytes", outputLimit), Stderr: tail}
	case errors.Is(err, errTimedOut):
		return nil, &TimeoutError{Command: p.config.Command, After: timeout, Stderr: tail}
	case errors.As(err, &e):
		return nil, &ExitError{Command: p.config.Command, Code: e.ExitCode(), Signal: signalOf(e.ProcessState), Stderr: tail}
	case err != nil:
		return nil, err
	}
	credential, err := Decode(stdout, p.config.APIVersion, p.clock.Now())
	if e := (*OutputError)(nil); errors.As(err, &e) {
		e.Command, e.Stderr = p.config.Command, tail
	}
	return credential, err
}

// interactive reports whether the program gets the terminal. It is called before every run: terminals come and go.
func (p *program) interactive() (bool, error) {
	switch p.config.interactiveMode() {
	case IfAvailable:
		return p.config.StdinUnavailable == "" && p.isTerminal(p.stdin), nil
	case Always:
		if !p.isTerminal(p.stdin) {
			return false, &InteractiveError{Command: p.config.Command, Reason: "standard input is not a terminal"}
		}
		if p.config.StdinUnavailable != "" {
			return false, &InteractiveError{Command: p.config.Command, Reason: "standard input is unavailable: " + p.config.StdinUnavailable}
		}
		return true, nil
	default:
		return false, nil
	}
}
