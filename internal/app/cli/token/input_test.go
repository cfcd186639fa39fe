package token

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/test/testkit"
)

func TestReadTokenNeverCutsOne(t *testing.T) {
	longest := strings.Repeat("a", relyingparty.MaxTokenLength)
	for in, want := range map[string]string{
		" \n token \r\n":          "token",
		longest + "\r\n":          longest,
		longest + "\r\n and more": longest + "\r\n ",
		longest + longest:         longest + "aaa",
	} {
		got, err := Read(strings.NewReader(in), "-")
		if err != nil || got != want {
			t.Errorf("of %d bytes %d were read, want %d (%v)", len(in), len(got), len(want), err)
		}
	}
	if _, err := Read(iotest.ErrReader(errors.New("broken pipe")), "-"); command.ExitCode(err) != command.ExitUsage {
		t.Errorf("error %v", err)
	}
}

func TestRefusalsArePrintable(t *testing.T) {
	var out bytes.Buffer
	result := relyingparty.Result{Findings: []relyingparty.Finding{{Reason: relyingparty.Malformed, Detail: "a\x1b[2Jb"}}}
	testkit.Must(t, printRefused(&out, result, errors.New("c\u009bd")))
	want := "refused\nMalformed: a\\u001b[2Jb\nthe signature was not checked: c\\u009bd\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
