package execcredential

import (
	"fmt"
	"strings"
)

// limits of an operating system, in bytes; 0 for unlimited.
type limits struct {
	each        int // one argument, or one variable with its name
	commandLine int // all arguments
	total       int // all arguments and variables, with a terminator and a pointer for each
}

// check names the argument or variable that is too large, as the operating system's error does not.
func (l limits) check(args, env []string) error {
	commandLine, total := 0, 0
	for i, arg := range args {
		if l.each > 0 && len(arg) > l.each {
			return &TooLargeError{What: fmt.Sprintf("argument %d", i), Size: len(arg), Limit: l.each}
		}
		commandLine += len(arg) + 3
		total += len(arg) + 9
	}
	if l.commandLine > 0 && commandLine > l.commandLine {
		return &TooLargeError{What: "the command line", Size: commandLine, Limit: l.commandLine}
	}
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if l.each > 0 && len(variable) > l.each {
			return &TooLargeError{What: "environment variable " + name, Size: len(variable), Limit: l.each, Hint: sizeHint(name)}
		}
		total += len(variable) + 9
	}
	if l.total > 0 && total > l.total {
		return &TooLargeError{What: "all arguments and environment variables together", Size: total, Limit: l.total, Hint: sizeHint(execInfoVariable)}
	}
	return nil
}

func sizeHint(variable string) string {
	if variable != execInfoVariable {
		return ""
	}
	return "with provideClusterInfo it holds the cluster's certificate authorities: name fewer of them, or set provideClusterInfo to false"
}
