//go:build linux

package child

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test's own binary is the child, and the parent that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "serve":
		serve()
	case "fails":
		fmt.Fprintln(os.Stderr, "no way")
		os.Exit(3)
	case "ignores":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "runs")
		select {}
	case "lives":
		DieWithParent()
		fmt.Fprintln(os.Stderr, "runs")
		select {}
	case "parent":
		_ = Run(context.Background(), Spec{Args: []string{"lives"}})
	default:
		os.Exit(m.Run())
	}
}

func serve() {
	DieWithParent()
	listener, err := Listener()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		_, _ = io.WriteString(connection, "hello")
		_ = connection.Close()
	}
}

// The child alone holds the listener: once it has ended, connections are refused.
func TestRunHandsOverTheListener(t *testing.T) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Spec{Args: []string{"serve"}, Listener: listener}) }()
	connection, err := net.Dial("tcp", listener.Addr().String()) // the port is open from the start
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if text, err := io.ReadAll(connection); err != nil || string(text) != "hello" {
		t.Errorf("the child answers %q, %v", text, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the child was stopped: %v", err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("the port is open, and no child is there")
	}
}

func TestRunReportsAChildThatEndsByItself(t *testing.T) {
	var output bytes.Buffer
	pid := 0
	err := Run(t.Context(), Spec{Args: []string{"fails"}, Output: &output, Started: func(started int) { pid = started }})
	if want := fmt.Sprintf("process %d: exit status 3", pid); err == nil || err.Error() != want || output.String() != "no way\n" {
		t.Errorf("%v, output %q, want %s", err, &output, want)
	}
}

func TestRunKillsAChildThatDoesNotEnd(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Spec{Args: []string{"ignores"}, Output: writer, Apart: true, Grace: 10 * time.Millisecond})
		_ = writer.Close()
	}()
	if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the child was killed: %v", err)
	}
}

// The kernel closes the lifeline of a parent that is killed. The child holds the test's pipe until then.
func TestChildEndsWithItsParent(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), executable, "parent")
	output, err := parent.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); err != nil || line != "runs\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
}

func TestRunProgram(t *testing.T) {
	for script, want := range map[string]string{"echo ends": "exit status 0", "exit 3": "exit status 3"} {
		var output bytes.Buffer
		pid := 0
		err := RunProgram(t.Context(), exec.CommandContext(t.Context(), "/bin/sh", "-c", script), &output, func(started int) { pid = started })
		if text := fmt.Sprintf("process %d: %s", pid, want); err == nil || err.Error() != text {
			t.Errorf("%s: %v, want %s", script, err, text)
		}
		if strings.HasPrefix(script, "echo") && output.String() != "ends\n" {
			t.Errorf("output %q", &output)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := RunProgram(ctx, exec.CommandContext(ctx, "/bin/sh", "-c", "exec sleep 600"), io.Discard, func(int) { stop() }); err != nil {
		t.Errorf("the program was stopped: %v", err)
	}
	if err := RunProgram(t.Context(), exec.Command("/nonexistent"), io.Discard, func(int) { t.Error("it has started") }); err == nil || !strings.Contains(err.Error(), "start process") {
		t.Errorf("no program: %v", err)
	}
}
