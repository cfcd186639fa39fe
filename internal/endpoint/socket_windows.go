package endpoint

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	errNotListening = windows.WSAECONNREFUSED
	errQueueFull    = windows.WSAEWOULDBLOCK
)

// ownerAlone gives all rights to the system, to administrators and to the owner, and none to others, whatever a folder has its files inherit.
const ownerAlone = "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)"

// beforeName does nothing: a socket has the access rights of its file.
func beforeName(string, string, syscall.RawConn) error { return nil }

func (s Socket) restrict() error {
	descriptor, err := windows.SecurityDescriptorFromString(ownerAlone)
	if err != nil {
		return err
	}
	access, _, err := descriptor.DACL()
	if err != nil {
		return err
	}
	file, err := openSocket(s, windows.WRITE_DAC)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(file) }()
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	if err := windows.SetSecurityInfo(file, windows.SE_FILE_OBJECT, what, nil, nil, access, nil); err != nil {
		return &os.PathError{Op: "set the access rights of", Path: string(s), Err: err}
	}
	return nil
}

// openSocket opens the file of a socket, which is a reparse point.
func openSocket(s Socket, rights uint32) (windows.Handle, error) {
	path, err := windows.UTF16PtrFromString(string(s))
	if err != nil {
		return 0, err
	}
	file, err := windows.CreateFile(path, rights, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OPEN_REPARSE_POINT|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: string(s), Err: err}
	}
	return file, nil
}
