package documents

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// Reader is the place of a person who follows a document.
type Reader struct {
	// Folder holds what the reader has, by name: links to these paths.
	Folder map[string]string
	// Environment is added to that of the test.
	Environment []string
	// Terminal is the reader's standard input; nil: without one.
	Terminal *os.File
	// Screen is written what the commands print, as they do; nil: it is dropped.
	Screen io.Writer
}

// Run follows those of the documents that have blocks with the fence, each as a test of its own. It returns how many commands there were.
func Run(t *testing.T, paths []string, fence string, reader func(t *testing.T) Reader) int {
	t.Helper()
	commands := 0
	for _, path := range paths {
		list := examples(t, path, fence)
		if len(list) == 0 {
			continue
		}
		commands += len(list)
		t.Run(strings.TrimPrefix(path, Repository+"/"), func(t *testing.T) { reader(t).follow(t, path, list) })
	}
	return commands
}

// progress is what the command line notes when something takes long: readers of a document see it on a slow machine only.
var progress = regexp.MustCompile(`(?m)^waiting for .* \.\.\.\n`)

// follow runs the commands of one document in one shell, in a folder of its own.
func (r Reader) follow(t *testing.T, path string, list []example) {
	t.Helper()
	// A name that is short whatever the document's is: there are sockets below.
	dir := testkit.Need(os.MkdirTemp("", "docs"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, target := range r.Folder {
		absolute := testkit.Need(filepath.Abs(target))(t)
		testkit.Must(t, os.Symlink(absolute, filepath.Join(dir, name)))
	}
	const mark = "=-=-= end of command, exit code "
	var script strings.Builder
	for _, e := range list {
		fmt.Fprintf(&script, "%s\nprintf '\\n%s%%s\\n' $?\n", e.command, mark)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec 2>&1\n"+script.String())
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second // processes that a command left behind don't delay the test
	cmd.Env = append(os.Environ(), r.Environment...)
	if r.Terminal != nil {
		cmd.Stdin = r.Terminal
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if r.Screen != nil {
		cmd.Stdout = io.MultiWriter(&out, r.Screen)
	}
	if err := cmd.Run(); err != nil {
		t.Logf("shell: %v", err)
	}
	parts := strings.Split(out.String(), "\n"+mark)
	for i, e := range list {
		if i+1 >= len(parts) {
			t.Fatalf("%s:%d: the shell ended before this command was done:\n%s\n%s", path, e.line, e.command, parts[i])
		}
		got := parts[i]
		if i > 0 {
			_, got, _ = strings.Cut(got, "\n") // the exit code of the command before
		}
		got = progress.ReplaceAllString(got, "")
		code, _, _ := strings.Cut(parts[i+1], "\n")
		if code != "0" {
			t.Errorf("%s:%d: exit code %s\n$ %s\n%s", path, e.line, code, e.command, got)
		} else if !pattern(e.want).MatchString(got) && !pattern(e.want).MatchString(got+"\n") {
			t.Errorf("%s:%d: printed something else\n$ %s\n%s\nwant:\n%s", path, e.line, e.command, got, e.want)
		}
	}
}
