//go:build unix

package process

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// roleVariable makes the test binary a program that behaves in one way.
const roleVariable = "PROCESS_TEST_ROLE"

// TestMain is the fake programs too.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "sleeper": // runs until it is signaled to end
		announce()
		wait(syscall.SIGTERM)
	case "stubborn": // ignores the signal to end
		signal.Ignore(syscall.SIGTERM)
		announce()
		wait(syscall.SIGUSR1)
	case "failing":
		fmt.Fprintln(os.Stderr, "Error: the cup is broken")
		os.Exit(3)
	case "parent": // leaves a child in its process group, and runs until it is signaled to end
		child(os.Args[1])
		announce()
		wait(syscall.SIGTERM)
		os.Exit(1)
	case "supervisor": // runs a sleeper through a Launcher, and never ends it
		supervise(os.Args[1])
	}
	os.Exit(0)
}

// announce lets the test, which reads the log, know that signals are handled from now on.
func announce() { fmt.Println("here") }

func wait(asking os.Signal) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, asking)
	fmt.Println("waiting")
	<-asked
}

func child(folder string) {
	command := self("stubborn")
	command.Stdout = nil
	if err := command.Start(); err != nil {
		panic(err)
	}
	write(folder, command.Process.Pid)
}

func supervise(folder string) {
	if err := os.Setenv(roleVariable, "sleeper"); err != nil {
		panic(err)
	}
	p, err := NewLauncher().Start(Spec{Name: "child", Path: executable(), LogFile: filepath.Join(folder, "child.log")})
	if err != nil {
		panic(err)
	}
	write(folder, p.PID())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func write(folder string, pid int) {
	file := filepath.Join(folder, "pid")
	if err := os.WriteFile(file+".new", fmt.Append(nil, pid), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		panic(err)
	}
}

func executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
