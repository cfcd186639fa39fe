package credential

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/wording"
)

// person is the one in front of this program. It implements credential.Terminal.
type person struct {
	errOut io.Writer
	// browser holds the commands that the person chose to open pages by; empty: the one of the system.
	browser []string
}

// Notice implements credential.Terminal.
func (p person) Notice(format string, args ...any) {
	fmt.Fprintln(p.errOut, wording.Continued(fmt.Sprintf(format, args...)))
}

// OpenURL implements credential.Terminal.
func (p person) OpenURL(address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	if len(p.browser) > 0 {
		return openByOneOf(p.browser, address)
	}
	if err := noBrowser(runtime.GOOS, os.Getenv); err != nil {
		return err
	}
	cmd, err := openerOf(runtime.GOOS, address)
	if err != nil {
		return err
	}
	return start(cmd)
}

// noBrowser returns why the person would not see a page, if it is known.
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

// checkAddress returns an error for what is not an address of the web: programs that open pages open files and run others, too.
func checkAddress(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("open a browser: the address is not one of the web")
	}
	return nil
}

// openerOf returns the program of the system that opens pages, without the variable by which some of these run another program: it was not
// the person who set it where it is not in person.browser.
func openerOf(system, address string) (*exec.Cmd, error) {
	command := []string{"xdg-open", address}
	switch system {
	case "darwin":
		command = []string{"/usr/bin/open", address}
	case "windows":
		folder, err := systemFolder()
		if err != nil {
			return nil, fmt.Errorf("open a browser: find the folder of the system: %w", err)
		}
		command = []string{filepath.Join(folder, "rundll32.exe"), "url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.EqualFold(name, browserVariable)
	})
	return cmd, nil
}

// start runs a program that opens a page. It gets nothing of our input and output, which is the client's.
func start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
