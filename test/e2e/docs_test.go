package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// example is a command of a document and what the document says that it prints.
type example struct {
	line    int
	command string
	want    string
}

// documents returns every Markdown file of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	if err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != repository && (strings.HasPrefix(name, ".") && name != ".." || name == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// examples reads the blocks of a document that start with block: "$ " starts a command, "> " goes on with it, the rest is its output.
func examples(t *testing.T, path, block string) []example {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	inside := false
	for i, line := range strings.Split(string(content), "\n") {
		switch fence := strings.TrimSpace(line); {
		case fence == block:
			inside = true
		case strings.HasPrefix(fence, "```"):
			inside = false
		case !inside:
		case strings.HasPrefix(line, "$ "):
			list = append(list, example{line: i + 1, command: line[2:]})
		case len(list) == 0:
			t.Fatalf("%s:%d: output before the first command", path, i+1)
		case strings.HasPrefix(line, "> ") && list[len(list)-1].want == "":
			list[len(list)-1].command += "\n" + line[2:]
		case line == ">" && list[len(list)-1].want == "":
			list[len(list)-1].command += "\n"
		default:
			list[len(list)-1].want += line + "\n"
		}
	}
	return list
}

// pattern matches the output that a document promises: … stands for any text of a line, and alone for any lines.
func pattern(want string) *regexp.Regexp {
	var expression strings.Builder
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "…" {
			expression.WriteString(`(?s:.*)`)
			continue
		}
		expression.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), "…", `[^\n]*`) + ` *\n`)
	}
	return regexp.MustCompile(`^` + expression.String() + `\n?$`)
}

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		want, got string
		matches   bool
	}{
		{"", "", true}, {"", "x\n", false}, {"a\n", "a\n", true}, {"a\n", "a\nb\n", false}, {"a…c\n", "abbc\n", true},
		{"a…c\n", "ab\nbc\n", false}, {"a\n…\n", "a\nb\nc\n", true}, {"a\n…\n", "b\n", false}, {"a.c\n", "abc\n", false},
	} {
		if pattern(test.want).MatchString(test.got) != test.matches {
			t.Errorf("pattern(%q) on %q: want %v", test.want, test.got, test.matches)
		}
	}
}

func TestDocuments(t *testing.T) {
	commands := 0
	for _, path := range documents(t) {
		list := examples(t, path, "```console")
		if len(list) == 0 {
			continue
		}
		commands += len(list)
		t.Run(strings.TrimPrefix(path, repository+"/"), func(t *testing.T) { follow(t, shared, path, list) })
	}
	if commands < 10 {
		t.Errorf("found %d commands in the documents only", commands)
	}
}

// follow runs the commands of one document in one shell, as a reader would after make up, which made p.
func follow(t *testing.T, p plane, path string, list []example) {
	// A name that is short whatever the document's is: there are sockets below.
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, target := range map[string]string{
		"bin": filepath.Dir(program("credence")), ".credence": p.Dir,
		"docs": filepath.Join(repository, "docs"), "deploy": filepath.Join(repository, "deploy"),
	} {
		absolute, err := filepath.Abs(target)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(absolute, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	port, err := freePorts(portsPerPlane)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "=-=-= end of command, exit code "
	var script strings.Builder
	for _, e := range list {
		fmt.Fprintf(&script, "%s\nprintf '\\n%s%%s\\n' $?\n", e.command, mark)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec 2>&1\n"+script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG=", fmt.Sprintf("SECOND_PORT=%d", port))
	out, err := cmd.Output()
	if err != nil {
		t.Logf("shell: %v", err)
	}
	parts := strings.Split(string(out), "\n"+mark)
	for i, e := range list {
		if i+1 >= len(parts) {
			t.Fatalf("%s:%d: the shell ended before this command was done:\n%s\n%s", path, e.line, e.command, parts[i])
		}
		got := parts[i]
		if i > 0 {
			_, got, _ = strings.Cut(got, "\n") // the exit code of the command before
		}
		code, _, _ := strings.Cut(parts[i+1], "\n")
		if code != "0" {
			t.Errorf("%s:%d: exit code %s\n$ %s\n%s", path, e.line, code, e.command, got)
		} else if !pattern(e.want).MatchString(got) && !pattern(e.want).MatchString(got+"\n") {
			t.Errorf("%s:%d: printed something else\n$ %s\n%s\nwant:\n%s", path, e.line, e.command, got, e.want)
		}
	}
}

// What documents say of make must exist.
func TestDocumentsNameRealTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	found := 0
	for _, path := range documents(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range target.FindAllSubmatch(content, -1) {
			found++
			if !regexp.MustCompile(`(?m)^` + string(match[1]) + `:`).Match(makefile) {
				t.Errorf("%s names make %s, which the Makefile does not have", path, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document names a make target")
	}
}

// Links between documents lead somewhere.
func TestDocumentsLinkToFiles(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, path := range documents(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllSubmatch(content, -1) {
			if to := string(match[1]); !strings.Contains(to, "://") {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
					t.Errorf("%s links to %s: %v", path, to, err)
				}
			}
		}
	}
}
