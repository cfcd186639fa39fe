package credential_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

const (
	providerFolder = "CREDENTIAL_TEST_FOLDER"
	providerLog    = "CREDENTIAL_TEST_LOG"
	providerWait   = "CREDENTIAL_TEST_WAIT"
)

// TestMain runs this program as a provider, for tests in which clients are processes.
func TestMain(m *testing.M) {
	if os.Getenv(providerFolder) == "" {
		os.Exit(m.Run())
	}
	if err := provide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func provide() error {
	environment, present := os.LookupEnv(credential.EnvironmentVariable)
	info, err := credential.ParseExecInfo(environment, present, false)
	if err != nil {
		return err
	}
	provider := credential.Provider{
		Folder: os.Getenv(providerFolder), Now: time.Now, Caller: credential.Client(os.Getenv), Terminal: printer{}, Patience: -1,
	}
	c, err := provider.Serve(context.Background(), logged{}, info)
	if err != nil {
		return err
	}
	out, err := c.Encode(info.APIVersion)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}

type printer struct{}

func (printer) Notice(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (printer) OpenURL(string) error              { return nil }

// logged is a source that appends a line to a file for each call; the tokens are numbered by it. It answers when a given file
// exists.
type logged struct{}

func (logged) Key() map[string]string { return map[string]string{"source": "logged"} }

func (logged) Obtain(context.Context, credential.Request) (credential.Credential, json.RawMessage, error) {
	log, err := os.OpenFile(os.Getenv(providerLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return credential.Credential{}, nil, err
	}
	defer func() { _ = log.Close() }()
	if _, err := fmt.Fprintln(log, os.Getpid()); err != nil {
		return credential.Credential{}, nil, err
	}
	for path := os.Getenv(providerWait); path != ""; {
		if _, err := os.Stat(path); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	lines, err := os.ReadFile(os.Getenv(providerLog))
	token := fmt.Sprintf("token-%d", bytes.Count(lines, []byte("\n")))
	return credential.Credential{Token: credential.NewSecret(token), Expires: time.Now().Add(time.Hour)}, nil, err
}

// processes is what providers that are processes of their own have in common.
type processes struct {
	t                 *testing.T
	folder, log, wait string
}

func newProcesses(t *testing.T) processes {
	dir := t.TempDir()
	return processes{t: t, folder: filepath.Join(dir, "cache"), log: filepath.Join(dir, "log"), wait: filepath.Join(dir, "wait")}
}

func (p processes) environment() map[string]string {
	return map[string]string{providerFolder: p.folder, providerLog: p.log, providerWait: p.wait}
}

// start starts one provider. Its standard error is a pipe that shows when it waits.
func (p processes) start() (*exec.Cmd, *bytes.Buffer, *waiter) {
	p.t.Helper()
	out, told := &bytes.Buffer{}, &waiter{text: "waiting for process", seen: make(chan struct{})}
	command := exec.CommandContext(p.t.Context(), os.Args[0])
	command.Env = os.Environ()
	for name, value := range p.environment() {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdout, command.Stderr = out, told
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	return command, out, told
}

// calls are the processes that called the source.
func (p processes) calls() []string {
	data, _ := os.ReadFile(p.log)
	return strings.Fields(string(data))
}

func (p processes) until(what string, condition func() bool) {
	p.t.Helper()
	testkit.Eventually(p.t, what, condition)
}

// waiter is a writer that reports when a text was written.
type waiter struct {
	mu   sync.Mutex
	all  []byte
	text string
	seen chan struct{}
	once sync.Once
}

func (w *waiter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, data...)
	if bytes.Contains(w.all, []byte(w.text)) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(data), nil
}

// Eight processes with an empty cache: one calls the source, seven wait for it.
func TestEightProcessesAreOneLogin(t *testing.T) {
	p := newProcesses(t)
	var outputs []*bytes.Buffer
	var commands []*exec.Cmd
	var waiters []*waiter
	for range 8 {
		command, out, told := p.start()
		commands, outputs, waiters = append(commands, command), append(outputs, out), append(waiters, told)
	}
	p.until("seven wait", func() bool {
		waiting := 0
		for _, w := range waiters {
			select {
			case <-w.seen:
				waiting++
			default:
			}
		}
		return waiting == 7
	})
	testkit.Must(t, os.WriteFile(p.wait, nil, 0o600))
	for i, command := range commands {
		if err := command.Wait(); err != nil {
			t.Errorf("provider %d: %v: %s", i, err, waiters[i].all)
		}
		if outputs[i].String() != outputs[0].String() || !strings.Contains(outputs[i].String(), `"token":"token-1"`) {
			t.Errorf("provider %d printed %q", i, outputs[i])
		}
	}
	if calls := p.calls(); len(calls) != 1 {
		t.Errorf("the source was called by %v", calls)
	}
}

// A process that is killed during a login does not block the others.
func TestKilledWhileItObtains(t *testing.T) {
	p := newProcesses(t)
	first, _, _ := p.start()
	p.until("the first calls the source", func() bool { return len(p.calls()) == 1 })
	second, out, told := p.start()
	<-told.seen
	testkit.Must(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	testkit.Must(t, os.WriteFile(p.wait, nil, 0o600))
	if err := second.Wait(); err != nil || !strings.Contains(out.String(), `"token":"token-2"`) {
		t.Errorf("the second: %v, %q, %s", err, out, told.all)
	}
}

// Parent distinguishes this process from others, and is the same each time.
func TestParent(t *testing.T) {
	if got := credential.Parent(); got.PID != os.Getppid() || got != credential.Parent() || got.Started == "" {
		t.Errorf("parent %+v", got)
	}
}

// guarded is a server that takes the tokens of a set.
func guarded(t *testing.T, good func(token string) bool) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !good(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	}))
	t.Cleanup(server.Close)
	return server
}
