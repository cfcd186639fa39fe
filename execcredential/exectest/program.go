package exectest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
)

const (
	addressVariable = "EXECTEST_PROVIDER"
	roleVariable    = "EXECTEST_ROLE"
	leftBehind      = "left-behind"
	stdinVariable   = "EXECTEST_STDIN"
	unread          = "unread"
)

// Main is for TestMain. It runs the tests, except in a process that is to be a provider.
func Main(m *testing.M) {
	Intercept()
	os.Exit(m.Run())
}

// Intercept returns at once, except in a process that is to be a provider: that does what the test's handle returns, and ends. It is for a
// TestMain that does more than Main, as its first line.
func Intercept() {
	address := os.Getenv(addressVariable)
	if address == "" {
		return
	}
	connection, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "exectest: reach the test:", err)
		os.Exit(97)
	}
	if os.Getenv(roleVariable) == leftBehind {
		_ = json.NewEncoder(connection).Encode(message{LeftBehind: true, Call: Call{PID: os.Getpid()}})
		_, _ = io.Copy(io.Discard, connection) // until the test ends, or this process is killed
		os.Exit(0)
	}
	os.Exit(play(connection))
}

// message is what a process sends to the test.
type message struct {
	LeftBehind bool
	Call       Call
}

func play(connection net.Conn) int {
	call := Call{Info: os.Getenv("KUBERNETES_EXEC_INFO"), Args: os.Args[1:], Env: os.Environ(), PID: os.Getpid()}
	if os.Getenv(stdinVariable) == unread {
		// The test has a terminal without input.
	} else if input, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<16)); err == nil {
		call.Stdin = string(input)
	}
	var answer Answer
	if err := json.NewEncoder(connection).Encode(message{Call: call}); err != nil {
		return 98
	}
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return 99
	}
	_, _ = os.Stderr.WriteString(answer.Stderr)
	_, _ = os.Stdout.WriteString(answer.Stdout)
	if answer.LeaveBehind {
		if err := leaveBehind(); err != nil {
			fmt.Fprintln(os.Stderr, "exectest:", err)
			return 96
		}
	}
	for flood := bytes.Repeat([]byte("flood "), 1<<12); answer.Flood; {
		if _, err := os.Stdout.Write(flood); err != nil {
			return 95
		}
	}
	if answer.Hang {
		_, _ = io.Copy(io.Discard, connection)
	}
	return answer.ExitCode
}

// leaveBehind starts a process that keeps standard output and standard error open.
func leaveBehind() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), roleVariable+"="+leftBehind)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Start()
}
