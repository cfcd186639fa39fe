package execcredential

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalID is the device number of a terminal.
type terminalID uint64

// terminalOf distinguishes terminals, whatever the names are that they were opened by: /dev/tty is the one that it stands for.
func terminalOf(file *os.File) terminalID {
	if device, err := unix.IoctlGetUint32(int(file.Fd()), unix.TIOCGDEV); err == nil {
		return terminalID(device)
	}
	return 0
}
