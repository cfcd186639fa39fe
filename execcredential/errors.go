package execcredential

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrClosed is what every use of a Pool, and of what came from it, gets after Close.
var ErrClosed = errors.New("execcredential: the pool is closed")

// ConfigError names a field of a Config or Options that can't be used. Trying again is of no use before it is changed.
type ConfigError struct {
	Field  string // as kubeconfig spells it, for example "env[2].name"
	Reason string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("exec credential: %s %s", e.Field, e.Reason) }

// NotFoundError reports that the program does not exist.
type NotFoundError struct {
	Command     string
	InstallHint string // Config.InstallHint, without control characters
	Err         error  // the error of the operating system
}

func (e *NotFoundError) Error() string {
	message := fmt.Sprintf("exec credential: program %q not found: %v", e.Command, e.Err)
	if e.InstallHint != "" {
		message += "\n\n" + strings.TrimRight(e.InstallHint, "\n")
	}
	return message
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// StartError reports that the program exists and can't be started: no permission, a folder, not a program of this system.
type StartError struct {
	Path string // as resolved
	Err  error  // the error of the operating system
}

func (e *StartError) Error() string {
	return fmt.Sprintf("exec credential: start %q: %v; it must be readable and executable for this process", e.Path, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// PolicyError reports that the program must not run.
type PolicyError struct {
	Command string // as configured
	Path    string // as resolved; empty if that failed
	Reason  string
}

func (e *PolicyError) Error() string {
	if e.Path == "" || e.Path == e.Command {
		return fmt.Sprintf("exec credential: program %q is not allowed: %s", e.Command, e.Reason)
	}
	return fmt.Sprintf("exec credential: program %q (%s) is not allowed: %s", e.Command, e.Path, e.Reason)
}

// InteractiveError reports that the program needs a terminal, and why it can't have one.
type InteractiveError struct {
	Command string
	Reason  string
}

func (e *InteractiveError) Error() string {
	return fmt.Sprintf("exec credential: program %q must be interactive (interactiveMode: Always): %s", e.Command, e.Reason)
}

// TooLargeError reports that the operating system would not take an argument, a variable, or all of them together.
type TooLargeError struct {
	What        string // for example "environment variable KUBERNETES_EXEC_INFO"
	Size, Limit int    // bytes
	Hint        string // what to do
}

func (e *TooLargeError) Error() string {
	message := fmt.Sprintf("exec credential: %s has %d bytes, and this operating system takes at most %d", e.What, e.Size, e.Limit)
	if e.Hint != "" {
		message += "; " + e.Hint
	}
	return message
}

// ExitError reports that the program ended without success.
type ExitError struct {
	Command string
	Code    int    // exit code; -1 if a signal ended it
	Signal  string // the signal that ended it, if any
	Stderr  string // the end of its standard error, redacted
}

func (e *ExitError) Error() string {
	how := fmt.Sprintf("failed with exit code %d", e.Code)
	if e.Signal != "" {
		how = "was ended by signal " + e.Signal
	}
	return fmt.Sprintf("exec credential: program %q %s%s", e.Command, how, quoteStderr(e.Stderr))
}

// TimeoutError reports that the program was ended because it took too long.
type TimeoutError struct {
	Command string
	After   time.Duration
	Stderr  string // the end of its standard error, redacted
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("exec credential: program %q gave no answer for %s and was ended%s", e.Command, e.After, quoteStderr(e.Stderr))
}

// Timeout is true, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// OutputError reports that the program succeeded, and what is wrong with its standard output. errors.Is finds out which
// Problem it is. It never holds anything of the output but the names of versions, kinds and fields.
type OutputError struct {
	Command   string
	Problem   Problem
	Detail    string // where, and what to do
	Want, Got string // for WrongVersion, WrongGroup, WrongKind and NoVersion: the versions or kinds
	Stderr    string // the end of its standard error, redacted
}

func (e *OutputError) Error() string {
	var message strings.Builder
	message.WriteString("exec credential: ")
	if e.Command != "" {
		fmt.Fprintf(&message, "program %q: ", e.Command)
	}
	message.WriteString(string(e.Problem))
	if e.Want != "" {
		fmt.Fprintf(&message, ": expected %s, got %s", e.Want, cmp.Or(e.Got, "none"))
	}
	if e.Detail != "" {
		message.WriteString(": " + e.Detail)
	}
	message.WriteString(quoteStderr(e.Stderr))
	return message.String()
}

// Is reports whether target is the Problem of e.
func (e *OutputError) Is(target error) bool {
	problem, ok := target.(Problem)
	return ok && problem == e.Problem
}

// BackoffError reports that the program was not run, because it failed a short while ago. It unwraps to that failure.
type BackoffError struct {
	Failures int       // in a row
	Next     time.Time // when the program may run again
	Err      error
}

// Error has the first line of the failure: the callers that got the failure itself had the rest, such as the hint how to install a program.
func (e *BackoffError) Error() string {
	first, _, _ := strings.Cut(fmt.Sprint(e.Err), "\n")
	return fmt.Sprintf("%s (failed %d times in a row; not tried again before %s)", first, e.Failures, e.Next.Format(time.RFC3339))
}

func (e *BackoffError) Unwrap() error { return e.Err }

func quoteStderr(tail string) string {
	if tail == "" {
		return ""
	}
	return "; its standard error: " + tail
}

// clip keeps what came from outside short enough for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
