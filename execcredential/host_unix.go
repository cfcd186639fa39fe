//go:build unix

package execcredential

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func samePath(a, b string) bool { return a == b }

func tooLarge(err error) bool { return errors.Is(err, syscall.E2BIG) }

// maxLinks is how many symbolic links a kernel follows.
const maxLinks = 40

// trusted checks owner and mode of the file at path, of each symbolic link on the way to it, in the middle of a path too, and of every folder
// above these.
func trusted(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at, names := "/", strings.Split(path, "/") // no link is in at
	for links := 0; len(names) > 0; {
		name := names[0]
		names = names[1:]
		next := filepath.Join(at, name) // of "..", the folder above
		target, err := os.Readlink(next)
		if err != nil {
			at = next // what is missing is found in the end
			continue
		}
		if links++; links > maxLinks {
			return fmt.Errorf("more than %d symbolic links lead from %q", maxLinks, path)
		}
		if err := owned(next); err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		names = append(strings.Split(target, "/"), names...)
	}
	return owned(at)
}

// owned checks owner and mode of path, and of every folder above it.
func owned(path string) error {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("the owner of %q is unknown", path)
		}
		if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
			return fmt.Errorf("%q belongs to user %d, who could replace it", path, stat.Uid)
		}
		link := info.Mode()&os.ModeSymlink != 0 // its own mode means nothing
		sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0
		if info.Mode().Perm()&0o022 != 0 && !link && !sticky {
			return fmt.Errorf("%q has mode %#o: others can write it", path, info.Mode().Perm())
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// processTree is a program and what it starts: a process group, but that of an interactive program, which stays in the group that has the
// terminal. Processes that left the group, or were never in one, are looked up where the system lists them.
type processTree struct {
	command *exec.Cmd
	group   bool
	mark    string // in the environment of all of them
	started []int  // by the program
}

func newProcessTree(command *exec.Cmd, interactive bool) *processTree {
	command.SysProcAttr = attributes(!interactive)
	t := &processTree{command: command, group: !interactive, mark: markPrefix + rand.Text() + "="}
	command.Env = append(command.Env, t.mark)
	return t
}

// markPrefix begins the name of a variable that only the processes of one run have. Programs of this library that run each other have one
// each.
const markPrefix = "EXECCREDENTIAL_RUN_"

func (t *processTree) begun() error { return nil }

func (t *processTree) close() {}

// terminate signals the processes to end.
func (t *processTree) terminate() error { return t.signal(syscall.SIGTERM) }

// kill ends them.
func (t *processTree) kill() { _ = t.signal(syscall.SIGKILL) }

func (t *processTree) signal(signal syscall.Signal) error {
	if t.command.Process == nil {
		return os.ErrProcessDone
	}
	// Children of a process that is gone are no longer found as its children, so those that were found once are remembered.
	t.started = append(t.started, descendants(t.command.Process.Pid, t.mark)...)
	for _, pid := range t.started {
		_ = syscall.Kill(pid, signal)
	}
	if !t.group {
		return t.command.Process.Signal(signal)
	}
	err := syscall.Kill(-t.command.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
