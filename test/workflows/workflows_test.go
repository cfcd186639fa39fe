package workflows

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

const top = "../.."

func TestWorkflows(t *testing.T) {
	var found bytes.Buffer
	linter, err := actionlint.NewLinter(&found, &actionlint.LinterOptions{Color: actionlint.ColorOptionKindNever})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(top + "/.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %q, %v", files, err)
	}
	if _, err := linter.LintFiles(files, nil); err != nil || found.Len() > 0 {
		t.Errorf("%v\n%s", err, found.String())
	}
	makefile, err := os.ReadFile(top + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target, action := regexp.MustCompile(`\bmake ([a-z-]+)`), regexp.MustCompile(`uses: (\S+)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		targets := target.FindAllSubmatch(text, -1)
		for _, name := range targets {
			if !bytes.Contains(makefile, append([]byte("\n"), append(name[1], ':')...)) {
				t.Errorf("%s calls make %s, which is not in the Makefile", filepath.Base(file), name[1])
			}
		}
		if len(targets) == 0 {
			t.Errorf("%s does not call make", filepath.Base(file))
		}
		// A tag of an action can be moved by its owner. GitHub's own are trusted, as its machines are.
		for _, name := range action.FindAllSubmatch(text, -1) {
			if !strings.HasPrefix(string(name[1]), "actions/") {
				t.Errorf("%s uses %s, which is not GitHub's own", filepath.Base(file), name[1])
			}
		}
	}
}
