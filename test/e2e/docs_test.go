package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

const repository = documents.Repository

// Documents show the keys and all identities of a plane, so that nothing else may run there: they have one of their own, unless they are
// all that runs.
func TestDocuments(t *testing.T) {
	p := shared
	if !strings.HasPrefix(flag.Lookup("test.run").Value.String(), t.Name()) && os.Getenv("CREDENCE_E2E_DIR") == "" {
		first(t, ofPlane+ofCluster, 8)
		p = newPlane(t)
	}
	if commands := documents.Run(t, "```console", p.reader); commands < 10 {
		t.Errorf("found %d commands in the documents only", commands)
	}
}

// reader sits in the folder of the repository after make up, which made p.
func (p plane) reader(t *testing.T) documents.Reader {
	if filepath.Base(t.Name()) == "two-clusters.md" { // starts a plane; others, a cluster at most
		watches.take(t, watches.enter(ofPlane-ofCluster, urgent))
	}
	port, err := testkit.FreePorts(portsPerPlane)
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
