//go:build windows

package cache

import (
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// rights are those to change a folder or a file, to read its content, or to grant such rights.
const rights = windows.FILE_READ_DATA | windows.GENERIC_READ | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.FILE_WRITE_EA | windows.DELETE |
	windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL

// checkAccess refuses files of another user, and files that others than this user, administrators and the system may read or write.
// File modes carry no access rights here: the owner and the access list do.
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
		return fmt.Errorf("%s has no access list: every user may read and write there: choose another folder", path)
	}
	for i := range list.AceCount {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(i), &entry); err != nil {
			return fmt.Errorf("%s: its access list cannot be read: %w", path, err)
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

// trusted reports whether an account has all of this user's rights anyway.
func trusted(who, user *windows.SID) bool {
	return who.Equals(user) || who.IsWellKnown(windows.WinBuiltinAdministratorsSid) || who.IsWellKnown(windows.WinLocalSystemSid)
}
