package login_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/test/testkit"
)

// newTerminal returns a program's end of a new terminal.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	person := testkit.Need(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = person.Close() })
	number := testkit.Need(unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN))(t)
	testkit.Must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	program := testkit.Need(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = program.Close() })
	return program
}
