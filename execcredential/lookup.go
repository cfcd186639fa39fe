package execcredential

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// isRelativePath reports whether command is a path, not a name to look up in PATH, and does not begin at the root.
func isRelativePath(command string) bool {
	return hasSeparator(command) && !filepath.IsAbs(command)
}

func hasSeparator(command string) bool {
	return strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator)
}

// lookup returns the absolute path of the program. What PATH finds in the current directory, or in a folder that is relative to it,
// does not count as found.
func (c Config) lookup() (string, error) {
	command := c.Command
	if isRelativePath(command) {
		command = filepath.Join(c.Folder, command)
	}
	path, err := exec.LookPath(command)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", &PolicyError{Command: c.Command, Path: path, Reason: "PATH finds it relative to the current directory, from which no program is run; name it by an absolute path"}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &NotFoundError{Command: c.Command, InstallHint: c.InstallHint, Err: cause(err)}
	case err != nil:
		return "", &StartError{Path: command, Err: cause(err)}
	case !filepath.IsAbs(path):
		return "", &PolicyError{Command: c.Command, Path: path, Reason: "it is relative to the current directory"}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", &StartError{Path: path, Err: errors.New("is a folder")}
	}
	return path, nil
}

// cause takes off the layers of an error that repeat the path.
func cause(err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return err
}

// startError is why the operating system would not start the file that was found at path.
func startError(path string, err error) error {
	if tooLarge(err) {
		return &StartError{Path: path, Err: fmt.Errorf("%w; with provideClusterInfo the cluster's certificate authorities are among the variables", cause(err))}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(path); statErr == nil {
			return &StartError{Path: path, Err: errors.New("the interpreter or loader that it names does not exist")}
		}
		return &NotFoundError{Command: path, Err: cause(err)}
	}
	if strings.Contains(err.Error(), "exec format error") {
		return &StartError{Path: path, Err: fmt.Errorf("%w: it is not a program of this system, or a script that does not begin with #! and an interpreter", cause(err))}
	}
	return &StartError{Path: path, Err: cause(err)}
}
