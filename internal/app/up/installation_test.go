//go:build unix

package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/test/testkit"
)

// patience bounds every wait of these tests; none is expected to take a tenth of it.
const patience = 5 * time.Minute

// laptop is a folder with programs, a directory for an installation, and ports of its own.
type laptop struct {
	t      *testing.T
	bin    string
	dir    home.Dir
	port   int
	events string
	env    []string
}

func newLaptop(t *testing.T, env ...string) *laptop {
	t.Helper()
	// Its path is short: refusals abbreviate commands that name it.
	root := testkit.Need(os.MkdirTemp("", "up"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	l := &laptop{
		t: t, bin: filepath.Join(root, "bin"), dir: home.Dir(filepath.Join(root, "state")), port: freePorts(t),
		events: filepath.Join(root, "events"), env: env,
	}
	testkit.Must(t, os.Mkdir(l.bin, 0o755))
	for _, name := range []string{"credence", "credence-devcluster", "credence-server", "credence-discovery", "credence-image-credentials", "credence-node"} {
		linkSelf(t, filepath.Join(l.bin, name))
	}
	t.Cleanup(l.clear)
	return l
}

// clear ends what a failed test left, and fails a test that passed but left something.
func (l *laptop) clear() {
	if pid, held, _ := l.dir.Holder(); held && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	deadline := time.Now().Add(patience)
	for left := l.processes(); len(left) > 0 && time.Now().Before(deadline); left = l.processes() {
		for _, r := range left {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// linkSelf puts the test binary at path: by a hard link, as a symbolic one would show where it points to.
func linkSelf(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	if os.Link(self, path) == nil {
		return
	}
	content, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(path, content, 0o755)
	}
	testkit.Must(t, err)
}

// freePorts returns the first of twenty ports. An installation uses fewer: this test keeps the last, which other tests
// look at first, so that none listens on the others even for a moment.
func freePorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		base := 20000 + 20*rand.IntN(500)
		last, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+19))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = last.Close() })
		if testkit.AllFree(base, 19) {
			return base
		}
	}
	t.Fatal("no twenty free ports in a row between 20000 and 30000")
	return 0
}

// command is a call of credence on this laptop that has not been started. One that hangs, as nothing stopped what should
// have been refused, is killed.
func (l *laptop) command(arguments ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	l.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, filepath.Join(l.bin, "credence"), arguments...)
	command.Env = append(os.Environ(), eventsVariable+"="+l.events, "PATH="+l.bin, "KUBECONFIG=/nonexistent")
	command.Env = append(command.Env, l.env...)
	command.Dir = filepath.Dir(string(l.dir))
	return command
}

// call runs credence to its end.
func (l *laptop) call(arguments ...string) (output string, err error) {
	l.t.Helper()
	// Files, not pipes: a process that stays in the background must not keep the call waiting.
	file, err := os.CreateTemp(l.t.TempDir(), "output")
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	command := l.command(arguments...)
	command.Stdout, command.Stderr = file, file
	err = command.Run()
	text, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		l.t.Fatal(readErr)
	}
	return string(text), err
}

// mustCall is call of something that succeeds.
func (l *laptop) mustCall(arguments ...string) string {
	l.t.Helper()
	output, err := l.call(arguments...)
	if err != nil {
		l.t.Fatalf("credence %s: %v\n%s%s", strings.Join(arguments, " "), err, output, l.logs())
	}
	return output
}

// waitHealthy is mustCall of status: on a machine that stalls, a part answers too late now and then.
func (l *laptop) waitHealthy(more ...string) (output string) {
	l.t.Helper()
	l.eventually("everything is healthy", func() (err error) {
		if output, err = l.call(append([]string{"status", "--dir", string(l.dir)}, more...)...); err != nil {
			return fmt.Errorf("%w: %s%s", err, output, l.logs())
		}
		return nil
	})
	return output
}

// mustFail is call of something that fails with each of the texts in its last line.
func (l *laptop) mustFail(wanted []string, arguments ...string) string {
	l.t.Helper()
	output, err := l.call(arguments...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		l.t.Fatalf("credence %s: %v, want exit status 1\n%s", strings.Join(arguments, " "), err, output)
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	for _, text := range wanted {
		if !strings.Contains(last, text) {
			l.t.Errorf("credence %s prints %q, want it to contain %q", strings.Join(arguments, " "), last, text)
		}
	}
	return output
}

func (l *laptop) upArguments(more ...string) []string {
	return append([]string{"up", "--dir", string(l.dir), "--port", fmt.Sprint(l.port)}, more...)
}

// foreground is an up that runs.
type foreground struct {
	*exec.Cmd
	output *buffer
	ended  chan error
}

// startUp starts up in the foreground and returns without waiting for it to be ready.
func (l *laptop) startUp(more ...string) *foreground {
	l.t.Helper()
	f := &foreground{Cmd: l.command(l.upArguments(more...)...), output: &buffer{}, ended: make(chan error, 1)}
	f.Stdout, f.Stderr = f.output, f.output
	if err := f.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { f.ended <- f.Wait() }()
	return f
}

func (l *laptop) waitReady(f *foreground) {
	l.t.Helper()
	l.eventually("up is ready", func() error {
		if strings.Contains(f.output.String(), "Try next:") {
			return nil
		}
		return errors.New(f.output.String() + l.logs())
	})
}

func (l *laptop) waitEnd(f *foreground) error {
	l.t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(patience):
		l.t.Fatalf("up does not end:\n%s", f.output)
		return nil
	}
}

func (l *laptop) eventually(what string, check func() error) {
	l.t.Helper()
	testkit.Wait(l.t, func(context.Context) error {
		if err := check(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// processes are those of the installation that run now, its supervisor included.
func (l *laptop) processes() []process.Running {
	l.t.Helper()
	left, err := process.Leftovers(string(l.dir), append(programNames(), "credence"))
	if err != nil {
		l.t.Fatal(err)
	}
	return left
}

func (l *laptop) nothingRuns() {
	l.t.Helper()
	l.eventually("nothing runs", func() error {
		if left := l.processes(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

func (l *laptop) endpoints() home.Endpoints {
	l.t.Helper()
	endpoints, found, err := l.dir.LoadEndpoints()
	if err != nil || !found {
		l.t.Fatalf("endpoints.json: found %v, %v", found, err)
	}
	return endpoints
}

func (l *laptop) recordedEvents() []string {
	l.t.Helper()
	content, err := os.ReadFile(l.events)
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

func (l *laptop) logs() string {
	files, _ := filepath.Glob(l.dir.Path("logs", "*.log"))
	var all strings.Builder
	for _, file := range files {
		content, _ := os.ReadFile(file)
		fmt.Fprintf(&all, "--- %s\n%s", file, content)
	}
	return all.String()
}

// buffer is a bytes.Buffer for a process that writes and a test that reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = (*buffer)(nil)

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
