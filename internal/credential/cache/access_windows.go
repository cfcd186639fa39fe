//go:build windows

package cache

import (
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// rights are those that let somebody change a folder or a file, or read what is in it, or let them take such rights.
const rights = windows.FILE_READ_DATA | windows.GENERIC_READ | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.FILE_WRITE_EA | windows.DELETE |
	windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL

// checkAccess refuses what belongs to another user, and what others than this user, administrators and the system may read or write.
// Files here say nothing by their mode: what counts is the owner, and the list of who may do what.
func checkAccess(path string, _ fs.FileInfo) error {
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("%s: its owner is not known: %w", path, err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("%s: the user of this process is not known: %w", path, err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil || owner == nil {
		return fmt.Errorf("%s: its owner is not known: choose another folder", path)
	}
	if !trusted(owner, user.User.Sid) {
		return fmt.Errorf("%s belongs to %s, but this process runs as %s: run it as that user, or choose another folder", path, owner, user.User.Sid)
	}
	list, _, err := descriptor.DACL()
	if err != nil || list == nil {
		return fmt.Errorf("%s has no list of who may use it: everybody may read and write there: choose another folder", path)
	}
	for i := range list.AceCount {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(i), &entry); err != nil {
			return fmt.Errorf("%s: who may use it cannot be read: %w", path, err)
		}
		if entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || entry.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || entry.Mask&rights == 0 {
			continue
		}
		if who := (*windows.SID)(unsafe.Pointer(&entry.SidStart)); !trusted(who, user.User.Sid) {
			return fmt.Errorf("%s can be read or written by %s: take that right away, or choose another folder", path, who)
		}
	}
	return nil
}

// trusted says whether somebody could do everything as this user in any case.
func trusted(who, user *windows.SID) bool {
	return who.Equals(user) || who.IsWellKnown(windows.WinBuiltinAdministratorsSid) || who.IsWellKnown(windows.WinLocalSystemSid)
}
