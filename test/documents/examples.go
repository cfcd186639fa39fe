package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// Repository is the path of the repository for the tests in test/*.
const Repository = "../.."

// All returns every Markdown file of the repository, without those of programs that were installed into it.
func All(t testing.TB) []string {
	t.Helper()
	var found []string
	testkit.Must(t, filepath.WalkDir(Repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != Repository && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return nil
	}))
	return found
}

// example is a command of a document and the output that the document has for it.
type example struct {
	line    int
	command string
	want    string
}

// examples reads the blocks of a document that start with fence: "$ " starts a command, "> " goes on with it, the rest is its output.
func examples(t testing.TB, path, fence string) []example {
	t.Helper()
	content := testkit.Need(os.ReadFile(path))(t)
	var list []example
	inside := false
	for i, line := range strings.Split(string(content), "\n") {
		switch start := strings.TrimSpace(line); {
		case start == fence:
			inside = true
		case strings.HasPrefix(start, "```"):
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

// columns are the spaces between the columns of a table: how many there are depends on the longest value of a column.
var columns = regexp.MustCompile(`(\S) {2,}(\S)`)

// pattern matches the output that a document promises: … stands for any text of a line, and alone for any lines.
// Columns may be wider or narrower than in the document.
func pattern(want string) *regexp.Regexp {
	var expression strings.Builder
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "…" {
			expression.WriteString(`(?s:.*)`)
			continue
		}
		quoted := regexp.QuoteMeta(strings.TrimRight(line, " \n"))
		quoted = columns.ReplaceAllString(quoted, `$1 {2,}$2`)
		expression.WriteString(strings.ReplaceAll(quoted, "…", `[^\n]*`) + ` *\n`)
	}
	return regexp.MustCompile(`^` + expression.String() + `\n?$`)
}
