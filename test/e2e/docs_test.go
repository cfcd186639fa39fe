package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/documents"
)

const repository = documents.Repository

// Documents show the keys and all identities of a plane, so that nothing else may run there: they have one of their own, unless they are
// all that runs.
func TestDocuments(t *testing.T) {
	p := shared
	if !strings.HasPrefix(flag.Lookup("test.run").Value.String(), t.Name()) && os.Getenv("CREDENCE_E2E_DIR") == "" {
		first(t, ofPlane+ofCluster)
		p = newPlane(t)
	}
	if commands := documents.Run(t, "```console", p.reader); commands < 10 {
		t.Errorf("found %d commands in the documents only", commands)
	}
}

// reader sits in the folder of the repository after make up, which made p.
func (p plane) reader(t *testing.T) documents.Reader {
	if filepath.Base(t.Name()) == "two-clusters.md" { // starts a plane; others, a cluster at most
		watches.take(t, ofPlane-ofCluster, true)
	}
	port, err := freePorts(portsPerPlane)
	if err != nil {
		t.Fatal(err)
	}
	return documents.Reader{
		Folder: map[string]string{
			"bin": filepath.Dir(program("credence")), ".credence": p.Dir,
			"docs": filepath.Join(repository, "docs"), "deploy": filepath.Join(repository, "deploy"),
		},
		Environment: []string{"KUBECONFIG=", fmt.Sprintf("SECOND_PORT=%d", port)},
	}
}

// The targets of make in documents must exist.
func TestDocumentsNameRealTargets(t *testing.T) {
	inTurn(t)
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	found := 0
	for _, path := range documents.All(t) {
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
	inTurn(t)
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, path := range documents.All(t) {
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
