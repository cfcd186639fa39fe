package endpoint

import (
	"runtime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("a", 250)
	for _, test := range []struct {
		text    string
		windows bool
		want    Endpoint // or
		refused string
	}{
		{text: "unix:///run/containerd/containerd.sock", want: Socket("/run/containerd/containerd.sock")},
		{text: "/run/./containerd//containerd.sock", want: Socket("/run/containerd/containerd.sock")},
		{text: "", refused: `"" is not an absolute path`},
		{text: "guard.sock", refused: `"guard.sock" is not an absolute path`},
		{text: "unix://run/guard.sock", refused: `"run/guard.sock" is not an absolute path`},
		{text: "unix:/run/guard.sock", refused: "is not an absolute path"},
		{text: "/" + long, refused: "has at most 103 bytes"},
		{text: "tcp://127.0.0.1:1", refused: "tcp://127.0.0.1:1 is not a unix socket"},
		{text: "npipe:////./pipe/containerd-containerd", refused: "npipe:////./pipe/containerd-containerd is a named pipe, and only Windows has those"},
		{text: `\\.\pipe\containerd-containerd`, refused: "is not an absolute path"},

		{text: "npipe:////./pipe/containerd-containerd", windows: true, want: Pipe(`\\.\pipe\containerd-containerd`)},
		{text: "npipe://./pipe/containerd-containerd", windows: true, want: Pipe(`\\.\pipe\containerd-containerd`)},
		{text: `npipe://\\.\pipe\containerd-containerd`, windows: true, want: Pipe(`\\.\pipe\containerd-containerd`)},
		{text: `\\.\pipe\containerd-containerd`, windows: true, want: Pipe(`\\.\pipe\containerd-containerd`)},
		{text: "//./pipe/containerd-containerd", windows: true, want: Pipe(`\\.\pipe\containerd-containerd`)},
		{text: "npipe:////./pipe/ProtectedPrefix/Administrators/a", windows: true, want: Pipe(`\\.\pipe\ProtectedPrefix\Administrators\a`)},
		{text: "npipe:////./pipe/", windows: true, refused: "npipe:////./pipe/ is not a named pipe of this machine"},
		{text: "npipe:////./pipe/a/../b", windows: true, refused: "is not a named pipe of this machine"},
		{text: "npipe:////server/pipe/a", windows: true, refused: "is not a named pipe of this machine"},
		{text: "npipe://server/pipe/a", windows: true, refused: "is not a named pipe of this machine"},
		{text: "npipe:///pipe/a", windows: true, refused: "is not a named pipe of this machine"},
		{text: "npipe:////./pipe/" + long, windows: true, refused: "with at most 256 bytes"},
		{text: "tcp://127.0.0.1:1", windows: true, refused: "tcp://127.0.0.1:1 is neither a named pipe"},
	} {
		if !test.windows && runtime.GOOS == "windows" {
			continue // what an absolute path is depends on the system
		}
		got, err := parse(test.text, test.windows)
		if test.refused == "" && (err != nil || got != test.want) || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%q with pipes %t: %v, %v, want %v%s", test.text, test.windows, got, err, test.want, test.refused)
		}
	}
}
