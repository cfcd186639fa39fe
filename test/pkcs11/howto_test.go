//go:build cgo

package pkcs11

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// The code of the how-to is that of the files which it names, word for word, so that it is what these tests run.
func TestHowto(t *testing.T) {
	content := testkit.Need(os.ReadFile("../../docs/howto/keys-in-a-device.md"))(t)
	var code strings.Builder
	for _, file := range []string{"token.go", "example_test.go", "tpm_test.go"} {
		part := testkit.Need(os.ReadFile(file))(t)
		code.Write(part)
		if !strings.Contains(string(content), "test/pkcs11/"+file) {
			t.Errorf("it does not name %s", file)
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	if len(blocks) == 0 {
		t.Error("it has no code")
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("this is in none of the files that it names:\n%s", block[1])
		}
	}
}
