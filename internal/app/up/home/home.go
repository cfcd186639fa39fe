//go:build unix

package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Dir is the absolute path of an installation's directory.
type Dir string

// Resolve makes path absolute.
func Resolve(path string) (Dir, error) {
	if path == "" {
		return "", errors.New("--dir is empty: name a directory, such as .credence")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("make --dir %q absolute: %w", path, err)
	}
	return Dir(absolute), nil
}

// Path joins the elements below d.
func (d Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{string(d)}, elements...)...)
}

// Kubeconfig is the admin's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// CAFile holds the certificate that every endpoint is verified with.
func (d Dir) CAFile() string { return d.Path("ca.crt") }

// Log is the log file of a component, or of the supervisor itself ("up").
func (d Dir) Log(name string) string { return d.Path("logs", name+".log") }

// StartupFile holds how long each part of the last start took.
func (d Dir) StartupFile() string { return d.Path("startup.json") }

// Exists reports whether d was ever set up.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.configFile())
	return err == nil
}

// Prepare makes d (mode 0700) with its logs folder, and checks that it may be used: that it is a directory of this user,
// that it is Credence's or empty, and that it can be written to.
func (d Dir) Prepare() error {
	info, err := os.Stat(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s cannot be used: %w", d, cause(err))
	case !info.IsDir():
		return fmt.Errorf("%s is a file, not a directory: choose another --dir", d)
	default:
		if err := d.checkOwner(info); err != nil {
			return err
		}
		if err := d.checkForeign(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.Path("logs"), 0o700); err != nil {
		return fmt.Errorf("%s cannot be written to (%w): choose another --dir, or change its permissions", d, cause(err))
	}
	if err := os.Chmod(string(d), 0o700); err != nil {
		return fmt.Errorf("%s cannot be made private (%w): choose another --dir", d, cause(err))
	}
	return nil
}

func (d Dir) checkOwner(info fs.FileInfo) error {
	owner, known := ownerOf(info)
	if !known || owner == os.Geteuid() {
		return nil
	}
	what := "run as that user, or choose another --dir"
	if os.Geteuid() == 0 {
		what += "; or stop its plane as that user, and hand it over: chown -R root: " + string(d)
	}
	return fmt.Errorf("%s belongs to %s and you are %s: %s", d, userName(owner), userName(os.Geteuid()), what)
}

// checkForeign keeps up from making a directory private, and littering it, that is something else's (a home directory).
func (d Dir) checkForeign() error {
	if d.Exists() {
		return nil
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("%s cannot be read (%w): choose another --dir, or change its permissions", d, cause(err))
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lockName && name != "logs" {
			return fmt.Errorf("%s has other files in it (%s) and was not made by credence up: choose an empty or new --dir", d, strconv.Quote(name))
		}
	}
	return nil
}

// cause drops the operation and path that the message around it already names.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
