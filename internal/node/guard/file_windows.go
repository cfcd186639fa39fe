package guard

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// writing are the rights by which a file is changed, or its other rights are.
const writing = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL

// checkWriters refuses rights of a kind that it does not know, too.
func checkWriters(file *os.File, _ os.FileInfo) error {
	descriptor, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("look up who may write %s: %w", file.Name(), err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("look up the owner of %s: %w", file.Name(), err)
	}
	if !mayWrite(owner) {
		return fmt.Errorf("%s belongs to %s: give it to administrators", file.Name(), owner)
	}
	access, _, err := descriptor.DACL()
	if err != nil {
		return fmt.Errorf("look up who may write %s: %w", file.Name(), err)
	}
	if access == nil { // all users have all rights
		return fmt.Errorf("%s has no list of access rights, so that other users can write it: give it one", file.Name())
	}
	for i := range access.AceCount {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(access, uint32(i), &entry); err != nil {
			return fmt.Errorf("look up who may write %s: %w", file.Name(), err)
		}
		switch {
		case entry.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0, entry.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE:
		case entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE:
			return fmt.Errorf("%s has access rights of an unknown kind (%d)", file.Name(), entry.Header.AceType)
		default:
			if who := (*windows.SID)(unsafe.Pointer(&entry.SidStart)); entry.Mask&writing != 0 && !mayWrite(who) {
				return fmt.Errorf("%s can be written by %s: take that right away", file.Name(), who)
			}
		}
	}
	return nil
}

// mayWrite reports whether a user is the system, an administrator, or the guard's own.
func mayWrite(who *windows.SID) bool {
	if who.IsWellKnown(windows.WinLocalSystemSid) || who.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return true
	}
	own, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && own.User.Sid.Equals(who)
}
