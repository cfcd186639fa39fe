package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// person is the one in front of this program. It implements credential.Terminal.
type person struct{ errOut io.Writer }

// Notice implements credential.Terminal.
func (p person) Notice(format string, args ...any) {
	fmt.Fprintln(p.errOut, continued(fmt.Sprintf(format, args...)))
}

// OpenURL implements credential.Terminal.
func (person) OpenURL(address string) error {
	if err := noBrowser(runtime.GOOS, os.Getenv); err != nil {
		return err
	}
	return openURL(runtime.GOOS, address)
}

// noBrowser says why a page would not be seen by the person, if it is known.
func noBrowser(system string, environment func(string) string) error {
	for _, variable := range []string{"SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"} {
		if environment(variable) != "" {
			return errors.New("open a browser: this is a session over SSH, and the browser would open at the other end")
		}
	}
	switch system {
	case "windows", "darwin":
		return nil
	}
	if environment("DISPLAY") == "" && environment("WAYLAND_DISPLAY") == "" {
		return errors.New("open a browser: there is no display")
	}
	return nil
}

// openURL starts the program of the system that opens pages. It gets nothing of our input and output, which is the client's.
func openURL(system, address string) error {
	// Such a program opens files and runs others, too.
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("open a browser: the address is not one of the web")
	}
	command := []string{"xdg-open", address}
	switch system {
	case "darwin":
		command = []string{"/usr/bin/open", address}
	case "windows":
		command = []string{filepath.Join(os.Getenv("SystemRoot"), "System32", "rundll32.exe"), "url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
