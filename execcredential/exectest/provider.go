package exectest

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
)

// Call is one run of the program.
type Call struct {
	Info  string   // KUBERNETES_EXEC_INFO
	Args  []string // without the name of the program
	Env   []string // all of it, as NAME=value
	Stdin string   // all of standard input, unless the variable EXECTEST_STDIN is "unread": a terminal ends only when its user ends it
	PID   int
	// Ended is closed when the process is gone.
	Ended <-chan struct{} `json:"-"`
}

// Answer is what a run of the program does.
type Answer struct {
	// Status is what it hands out, in an ExecCredential of the requested version. Nil to write Stdout instead.
	Status *Status
	// Stdout is what it writes to standard output, if there is no Status.
	Stdout string
	// Stderr is what it writes to standard error before.
	Stderr string
	// ExitCode is how it ends.
	ExitCode int
	// Hang keeps it from ending.
	Hang bool
	// Flood makes it write to standard output until it can't.
	Flood bool
	// LeaveBehind makes it start a process that goes on after it, and holds its standard output: see Provider.LeftBehind.
	LeaveBehind bool
}

// Status is status of an ExecCredential.
type Status struct {
	ExpirationTimestamp   *time.Time `json:"expirationTimestamp,omitempty"`
	Token                 string     `json:"token,omitempty"`
	ClientCertificateData string     `json:"clientCertificateData,omitempty"`
	ClientKeyData         string     `json:"clientKeyData,omitempty"`
}

// Token is an answer with a token. Zero expires means never.
func Token(token string, expires time.Time) Answer {
	return Answer{Status: &Status{Token: token, ExpirationTimestamp: timestamp(expires)}}
}

// Certificate is an answer with a client certificate and its key, in PEM. Zero expires means never.
func Certificate(certificate, key string, expires time.Time) Answer {
	return Answer{Status: &Status{ClientCertificateData: certificate, ClientKeyData: key, ExpirationTimestamp: timestamp(expires)}}
}

func timestamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Provider is a program for one test.
type Provider struct {
	t        testing.TB
	listener net.Listener
	handle   func(Call) Answer
	left     chan Call
	wg       sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]bool
	calls       []Call
	closed      bool
}

// NewProvider returns a program that does what handle returns, once for each run; runs at the same time call it at the same time, and a
// handle that doesn't return is a program that doesn't answer. The test binary must call Main or Intercept in TestMain. Everything
// ends with the test.
func NewProvider(t testing.TB, handle func(Call) Answer) *Provider {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the fake provider: %v", err)
	}
	p := &Provider{t: t, listener: listener, handle: handle, left: make(chan Call, 16), connections: map[net.Conn]bool{}}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

// Config names the program, for version v1 and without standard input. Change what the test is about.
func (p *Provider) Config() execcredential.Config {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatalf("find the test binary: %v", err)
	}
	return execcredential.Config{
		Command:         self,
		APIVersion:      execcredential.V1,
		InteractiveMode: execcredential.Never,
		Env: []execcredential.EnvVar{
			{Name: addressVariable, Value: p.listener.Addr().String()},
			{Name: "GORACE", Value: "atexit_sleep_ms=0"}, // with the race detector every process would sleep for a second before it ends
		},
	}
}

// Runs is how often the program was run so far.
func (p *Provider) Runs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Calls are the runs so far.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// LeftBehind has the processes that an Answer with LeaveBehind started.
func (p *Provider) LeftBehind() <-chan Call { return p.left }

func (p *Provider) accept() {
	defer p.wg.Done()
	for {
		connection, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.closed {
			_ = connection.Close()
		} else {
			p.connections[connection] = true
			p.wg.Add(1)
			go p.serve(connection)
		}
		p.mu.Unlock()
	}
}

func (p *Provider) serve(connection net.Conn) {
	defer p.wg.Done()
	ended := make(chan struct{})
	defer func() {
		_ = connection.Close()
		p.mu.Lock()
		delete(p.connections, connection)
		p.mu.Unlock()
	}()
	var m message
	if err := json.NewDecoder(connection).Decode(&m); err != nil {
		close(ended)
		return
	}
	m.Call.Ended = ended
	go func() {
		_, _ = io.Copy(io.Discard, connection) // the process never sends more
		close(ended)
	}()
	if m.LeftBehind {
		p.left <- m.Call
		<-ended
		return
	}
	p.mu.Lock()
	p.calls = append(p.calls, m.Call)
	p.mu.Unlock()
	answered := make(chan Answer, 1)
	go func() { answered <- p.handle(m.Call) }()
	select {
	case answer := <-answered:
		answer.Stdout = answer.output(m.Call)
		_ = json.NewEncoder(connection).Encode(answer)
	case <-ended:
	}
	<-ended
}

func (a Answer) output(call Call) string {
	if a.Status == nil {
		return a.Stdout
	}
	var asked struct {
		APIVersion string `json:"apiVersion"`
	}
	_ = json.Unmarshal([]byte(call.Info), &asked)
	out, _ := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": asked.APIVersion, "status": a.Status})
	return string(out)
}

func (p *Provider) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for connection := range p.connections {
		_ = connection.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
