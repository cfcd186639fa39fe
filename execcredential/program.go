package execcredential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	defaultTimeout = 60 * time.Second
	outputLimit    = 1 << 20

	depthVariable   = "EXECCREDENTIAL_DEPTH"
	mostDepthOfRuns = 5

	// drain is how long standard output of a program that has ended may be held open by what it started, and how long a program may
	// take to end when it is asked to.
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
	clock              Clock

	// What is asked of the operating system.
	isTerminal func(*os.File) bool
	environ    func() []string
	limits     limits
}

func newProgram(c Config, o Options) *program {
	p := &program{
		config:             c,
		policy:             o.Policy,
		timeout:            o.Timeout,
		interactiveTimeout: max(o.InteractiveTimeout, 0),
		stdin:              o.Stdin,
		stderr:             o.Stderr,
		clock:              o.Clock,
		isTerminal:         func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) },
		environ:            os.Environ,
		limits:             systemLimits(),
	}
	if p.timeout == 0 {
		p.timeout = defaultTimeout
	}
	p.timeout = max(p.timeout, 0)
	if p.stdin == nil {
		p.stdin = os.Stdin
	}
	if p.stderr == nil {
		p.stderr = os.Stderr
	}
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
	tail := stderr.redact(p.config.Env, p.config.Args, stdout)
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

// interactive says whether the program gets the terminal. It is asked before every run: terminals come and go.
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

func (p *program) command(interactive bool) (*exec.Cmd, error) {
	path, err := p.config.lookup()
	if err != nil {
		return nil, err
	}
	for _, policy := range []Policy{p.policy, p.config.Policy} {
		if path, err = policy.check(p.config.Command, path, p.config.Args, p.config.Env); err != nil {
			return nil, err
		}
	}
	if runtime.GOOS == "windows" {
		if err := checkBatch(p.config.Command, path, p.config.Args); err != nil {
			return nil, err
		}
	}
	command := &exec.Cmd{Path: path, Args: append([]string{p.config.Command}, p.config.Args...), Env: p.environ()}
	for _, v := range p.config.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	depth, err := p.depth(p.environ())
	if err != nil {
		return nil, err
	}
	command.Env = append(command.Env, depthVariable+"="+strconv.Itoa(depth))
	config := p.config
	err = p.tell(command, config, interactive)
	if tooLarge := (*TooLargeError)(nil); errors.As(err, &tooLarge) && config.ProvideClusterInfo {
		config.Cluster.CertificateAuthorityData = withoutComments(config.Cluster.CertificateAuthorityData)
		err = p.tell(command, config, interactive)
	}
	return command, err
}

// tell adds KUBERNETES_EXEC_INFO, and checks whether the operating system takes it.
func (p *program) tell(command *exec.Cmd, config Config, interactive bool) error {
	info, err := config.execInfo(interactive)
	if err != nil {
		return err
	}
	command.Env = append(command.Env, execInfoVariable+"="+info) // of equal names the last one counts
	return p.limits.check(command.Args, command.Environ())
}

// depth counts programs that were run by programs, of this library: a program whose own kubeconfig leads back to it would be run
// without end. What the config sets is no count.
func (p *program) depth(env []string) (int, error) {
	depth := 1
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, depthVariable+"="); ok {
			before, _ := strconv.Atoi(value)
			depth = before + 1
		}
	}
	if depth > mostDepthOfRuns {
		return 0, &PolicyError{Command: p.config.Command, Reason: fmt.Sprintf("%d programs run each other already; does the kubeconfig that it uses name itself?", mostDepthOfRuns)}
	}
	return depth, nil
}

// run returns what the program wrote. It returns when the program has ended, and its output with it; what it started and left behind
// may go on, except if the run failed.
func (p *program) run(ctx context.Context, prepared *exec.Cmd, interactive bool, timeout time.Duration) ([]byte, *tail, error) {
	// Linux ends the program with the thread that started it, so this one stays until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	command := exec.CommandContext(ctx, prepared.Path)
	command.Args, command.Env = prepared.Args, prepared.Env
	stdout, stderr := &limited{overflow: func() { cancel(errOverflow) }}, &tail{}
	command.Stdout = stdout
	command.Stderr = io.MultiWriter(stderr, &lenient{to: p.stderr})
	if interactive {
		command.Stdin = p.stdin
		if file, ok := p.stderr.(*os.File); ok {
			command.Stderr = file // prompts look whether they write to a terminal
		}
	}
	command.WaitDelay = drain
	var terminal *term.State
	if interactive {
		terminal, _ = term.GetState(int(p.stdin.Fd()))
	}
	tree := newProcessTree(command, interactive)
	command.Cancel = tree.terminate
	if err := command.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, stderr, context.Cause(ctx)
		}
		return nil, stderr, startError(prepared.Path, err)
	}
	defer tree.close()
	if timeout > 0 {
		defer p.clock.AfterFunc(timeout, func() { cancel(errTimedOut) })()
	}
	if err := tree.begun(); err != nil {
		cancel(fmt.Errorf("exec credential: keep %q together with what it starts: %w", prepared.Path, err))
	}
	err := command.Wait()
	switch {
	case stdout.full:
		err = errOverflow
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	if err != nil {
		tree.kill()
		if terminal != nil {
			// A program that is ended while it reads a password leaves a terminal that shows nothing.
			_ = term.Restore(int(p.stdin.Fd()), terminal)
		}
	}
	return stdout.kept, stderr, err
}

// limited keeps the first part of what is written to it, and says when that is not all. It has no ReadFrom, which io.Copy would prefer
// to Write.
type limited struct {
	kept     []byte
	full     bool
	overflow func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.full {
		return len(p), nil
	}
	if len(l.kept)+len(p) > outputLimit {
		l.full = true
		l.overflow()
		return len(p), nil
	}
	l.kept = append(l.kept, p...)
	return len(p), nil
}

// lenient keeps a program going when nobody takes its messages, and lets it end: os/exec waits for what is being written.
type lenient struct {
	to    io.Writer
	stuck bool
}

func (l *lenient) Write(p []byte) (int, error) {
	if l.stuck {
		return len(p), nil
	}
	written, copied := make(chan struct{}), bytes.Clone(p)
	go func() {
		defer close(written)
		_, _ = l.to.Write(copied)
	}()
	patience := time.NewTimer(drain)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
		l.stuck = true
	}
	return len(p), nil
}
