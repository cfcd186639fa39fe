package cli

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What opens pages may write what it likes: none of it gets into the answer for the client.
func TestBrowserGetsNoneOfOurOutput(t *testing.T) {
	folder := t.TempDir()
	done := filepath.Join(folder, "done")
	if err := syscall.Mkfifo(done, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho spoiled\necho spoiled >&2\necho \"$1\" > '" + done + "'\n"
	if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errOut := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = writer, writer
	err = openURL("linux", "https://login.example.com/x?y=z&a=$(id)")
	os.Stdout, os.Stderr = out, errOut
	if err != nil {
		t.Fatal(err)
	}
	// The pipe waits for the script to open it.
	address, err := os.ReadFile(done)
	if err != nil || string(address) != "https://login.example.com/x?y=z&a=$(id)\n" {
		t.Errorf("opened %q, %v", address, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if written, err := io.ReadAll(reader); err != nil || len(written) > 0 {
		t.Errorf("the browser wrote %q, %v", written, err)
	}
}
