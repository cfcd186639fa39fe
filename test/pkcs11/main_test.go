//go:build cgo

package pkcs11

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
)

// pin is that of every token of the tests.
const pin = "1234"

// driver is the file of SoftHSM, or empty.
var driver string

// missing is an error with what to install, if there is no SoftHSM.
var missing = func() error {
	if _, err := exec.LookPath("softhsm2-util"); err != nil {
		return errors.New("SoftHSM is missing; install it (apt-get install softhsm2)")
	}
	for _, file := range append([]string{os.Getenv("SOFTHSM2_MODULE")},
		"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so",
		"/usr/local/lib/softhsm/libsofthsm2.so", "/opt/homebrew/lib/softhsm/libsofthsm2.so") {
		if _, err := os.Stat(file); err == nil {
			driver = file
			return nil
		}
	}
	return errors.New("SoftHSM has no driver where one is looked for; name libsofthsm2.so in SOFTHSM2_MODULE")
}()

// tokens is the folder where SoftHSM keeps what would be in the hardware.
var tokens string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pkcs11:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	_, noTPM := exec.LookPath("swtpm")
	if missing != nil {
		fmt.Fprintln(os.Stderr, "pkcs11: tests are skipped:", missing)
		if err := flag.Set("test.skip", "^Example"); err != nil { // which cannot skip themselves
			return 0, err
		}
		if noTPM != nil {
			return m.Run(), nil
		}
	}
	dir, err := os.MkdirTemp("", "credence-pkcs11-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	tokens = filepath.Join(dir, "tokens")
	configuration := filepath.Join(dir, "softhsm2.conf")
	if err := errors.Join(
		os.Mkdir(tokens, 0o700),
		os.WriteFile(configuration, fmt.Appendf(nil, "directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n", tokens), 0o600),
		os.Setenv("SOFTHSM2_CONF", configuration),
	); err != nil {
		return 0, err
	}
	running, err := controlplane.Start(context.Background(), filepath.Join(dir, "cluster"), "--port", "0")
	if err != nil {
		return 0, err
	}
	defer running.Stop()
	shared = cluster{admin: running.Admin}
	return m.Run(), nil
}
