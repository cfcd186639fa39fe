package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/credence-id/credence/test/testkit"
)

func TestCauseIn(t *testing.T) {
	t.Parallel()
	const info = "I0102 15:04:05.000000    1234 server.go:56] all is well\n"
	for name, c := range map[string]struct{ log, want string }{
		"nothing":        {"", ""},
		"the last line":  {"one\ntwo\n\n", "two"},
		"klog's error":   {"E0102 15:04:05.000000    1234 server.go:56] the door is shut\n" + info, "the door is shut"},
		"klog without":   {info, "all is well"},
		"a final word":   {"E0102 15:04:05.000000    1234 server.go:56] noise\ncredence-server: key file is open to others\n", "key file is open to others"},
		"cobra's error":  {info + "Error: no issuer\n", "no issuer"},
		"structured":     {`{"level":"fatal","msg":"open wal","error":"permission denied"}` + "\n" + `{"level":"info","msg":"bye"}` + "\n", "open wal: permission denied"},
		"logfmt":         {"time=2026-01-02T15:04:05Z level=ERROR msg=oops\ntime=2026-01-02T15:04:06Z level=INFO msg=bye\n", "time=2026-01-02T15:04:05Z level=ERROR msg=oops"},
		"a full disk":    {"write wal: no space left on device\nE0102 15:04:05.000000    1234 server.go:56] lost my store\ncredence-server: no store\n", "write wal: no space left on device"},
		"a hidden disk":  {strings.Repeat("x", 500) + " no space left on device\n", "no space left on device: " + strings.Repeat("x", 375) + "…"},
		"a panic":        {info + "panic: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:5 +0x1\nexit status 2\n", "panic: index out of range"},
		"a hint":         {"error: --port is missing\nhint: see credence-server --help\n", "--port is missing"},
		"half of a line": {"Error: cut", "cut"},
		"not UTF-8":      {"Error: \xff\xfe\n", "?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "log")
			const before = "Error: of the run before\n"
			testkit.Must(t, os.WriteFile(file, []byte(before+c.log), 0o600))
			if got := CauseIn(file, int64(len(before))); got != c.want {
				t.Errorf("cause is %q, want %q", got, c.want)
			}
		})
	}
}

func TestCauseInALongLogAndNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	testkit.Must(t, os.WriteFile(file, []byte(strings.Repeat("line\n", tailSize)+"Error: the end\n"), 0o600))
	if got := CauseIn(file, 0); got != "the end" {
		t.Errorf("cause is %q", got)
	}
	if got := CauseIn(file, 1<<40); got != "the end" {
		t.Errorf("cause in a log that was cut is %q", got)
	}
	if got := CauseIn(file+".none", 0); got != "" {
		t.Errorf("cause in no log is %q", got)
	}
}

func FuzzCause(f *testing.F) {
	f.Add("E0102 15:04:05.000000    1234 server.go:56] the door is shut\n")
	f.Add(`{"level":"fatal","msg":"open wal","error":"no space left on device"}`)
	f.Add("panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\xff")
	f.Fuzz(func(t *testing.T, log string) {
		cause := causeOf(log)
		if strings.ContainsAny(cause, "\n\r") || !utf8.ValidString(cause) || len(cause) > maxCause+len("…")+len(noSpace) {
			t.Errorf("cause of %q is %q, which is not a short line", log, cause)
		}
		if strings.Contains(log, noSpace+"\n") && !strings.Contains(cause, noSpace) && !strings.Contains(cause, "panic: ") && !strings.Contains(cause, "fatal error: ") {
			t.Errorf("cause of a full disk is %q", cause)
		}
	})
}
