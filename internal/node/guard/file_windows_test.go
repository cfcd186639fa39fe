package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/credence-id/credence/test/testkit"
)

func TestWritersOfFiles(t *testing.T) {
	user := testkit.Need(windows.GetCurrentProcessToken().GetTokenUser())(t)
	own := "(A;;FA;;;" + user.User.Sid.String() + ")"
	for access, refused := range map[string]string{
		"D:P" + own: "",
		"D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;WD)" + own: "",
		"D:P(D;;FW;;;WD)" + own:                         "",
		"D:P(A;;FW;;;WD)" + own:                         "can be written by S-1-1-0",
		"D:P(A;;WD;;;BU)" + own:                         "can be written by S-1-5-32-545",
		"D:NO_ACCESS_CONTROL":                           "so that other users can write it",
	} {
		path := filepath.Join(t.TempDir(), "allowed.yaml")
		testkit.Must(t, os.WriteFile(path, []byte("{}"), 0o600))
		descriptor, err := windows.SecurityDescriptorFromString(access)
		if err != nil {
			t.Fatalf("%s: %v", access, err)
		}
		list, _, err := descriptor.DACL()
		if err != nil {
			t.Fatalf("%s: %v", access, err)
		}
		if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil); err != nil {
			t.Fatalf("%s: %v", access, err)
		}
		if _, err := readFile(path); refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v, want %q", access, err, refused)
		}
	}
}
