package keyring

import (
	"strings"
	"testing"
)

func TestRecordableNames(t *testing.T) {
	for name, want := range map[string]string{
		"jane":                         "jane",
		"system:serviceaccount:ns:one": "system:serviceaccount:ns:one",
		"controller":                   "user controller", // not the key controller
		"new\nline\x1b[31m":            "new?line?[31m",
		strings.Repeat("é", 200):       strings.Repeat("é", 128),
	} {
		if got := recordable(name); got != want {
			t.Errorf("%q is recorded as %q, want %q", name, got, want)
		}
	}
}
