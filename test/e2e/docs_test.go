package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

const repository = documents.Repository

// firstPages are what a new user reads first. They are followed on the shared plane, before all tests that run side by side. The README is
// the last: the second tutorial is refused a right that the README gives in a namespace of the same name.
var firstPages = []string{"docs/tutorial/first-workload-identity.md", "docs/tutorial/a-pod-with-an-identity.md", "README.md"}

func TestFirstPages(t *testing.T) {
	var paths []string
	for _, page := range firstPages {
		paths = append(paths, filepath.Join(repository, page))
	}
	if commands := documents.Run(t, paths, "```console", shared.reader); commands < 40 {
		t.Errorf("found %d commands, want at least 40", commands)
	}
}

// Documents show the keys and all identities of a plane, so that one at a time is followed on each of two planes.
func TestPlaneDocuments(t *testing.T) {
	const planes = 2
	first(t, planes*ofPlane+ofCluster, 8)
	free := make(chan plane, planes)
	for range planes {
		free <- newPlane(t)
	}
	others := slices.DeleteFunc(documents.All(t), func(path string) bool {
		return slices.ContainsFunc(firstPages, func(page string) bool { return path == filepath.Join(repository, page) })
	})
	commands := documents.Run(t, others, "```console", func(t *testing.T) documents.Reader {
		t.Parallel()
		p := <-free
		t.Cleanup(func() { free <- p })
		return p.reader(t)
	})
	if commands < 100 {
		t.Errorf("found %d commands in the documents only", commands)
	}
}

// reader sits in the folder of the repository after make up, which made p.
func (p plane) reader(t *testing.T) documents.Reader {
	if filepath.Base(t.Name()) == "two-clusters.md" { // starts a plane; others, a cluster at most
		watches.take(t, watches.enter(ofPlane-ofCluster, urgent))
	}
	port := need(testkit.FreePorts(portsPerPlane))(t)
	return documents.Reader{
		Folder: map[string]string{
			"bin": filepath.Dir(program("credence")), ".credence": p.Dir,
			"docs": filepath.Join(repository, "docs"), "deploy": filepath.Join(repository, "deploy"),
		},
		Environment: []string{"KUBECONFIG=", fmt.Sprintf("SECOND_PORT=%d", port)},
	}
}
