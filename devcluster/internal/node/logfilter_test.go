//go:build linux

package node

import (
	"io"
	"os"
	"testing"
)

func TestLogFilter(t *testing.T) {
	stderr := os.Stderr
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = writer
	defer func() { os.Stderr = stderr }()
	stopping := make(chan struct{})
	e := &logFilter{stopping: stopping}
	for _, text := range []string{
		"I0102 15:04:05.000000    1234 server.go:56] all is well\nE0102 15:04:05.000000    1234 server.go:56] the do",
		"or is shut\ntime=\"2026-01-02\" level=info msg=hello\nInfo of another kind\n",
		"credence-devcluster: no way\n\nhalf a li",
	} {
		if n, err := e.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	if got := e.lastLine(); got != ": no way" {
		t.Errorf("last words are %q", got)
	}
	close(stopping)
	_, _ = e.Write([]byte("ne\nE0102 15:04:05.000000    1234 server.go:56] connection closed\n"))
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if want := "E0102 15:04:05.000000    1234 server.go:56] the door is shut\nInfo of another kind\ncredence-devcluster: no way\n\n"; string(got) != want {
		t.Errorf("passed on is %q, want %q", got, want)
	}
}
