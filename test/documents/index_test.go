package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// The README links to every page but the decisions, which it names by their folder: a page that no index has is not found.
func TestReadmeListsEveryPage(t *testing.T) {
	readme := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "README.md")))(t)
	pages := 0
	for _, path := range documents.All(t) {
		page := testkit.Need(filepath.Rel(documents.Repository, path))(t)
		if page = filepath.ToSlash(page); !strings.HasPrefix(page, "docs/") || strings.HasPrefix(page, "docs/decisions/") {
			continue
		}
		if pages++; !strings.Contains(string(readme), "("+page+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
	if pages < 50 {
		t.Errorf("%d pages only", pages)
	}
}

// The pages about the tree name files and folders that are there: a path from the top, or the name of a Go file somewhere.
func TestDocumentsNameFiles(t *testing.T) {
	names := map[string]bool{}
	testkit.Must(t, filepath.WalkDir(documents.Repository, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			names[entry.Name()] = true
		}
		return err
	}))
	place := regexp.MustCompile("`((?:api|cmd|deploy|devcluster|docs|execcredential|hack|internal|release|test|tools)/[\\w./-]+|\\w+\\.go)`")
	member := regexp.MustCompile(`\.[A-Z]\w*$`) // of a package
	found := 0
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		content := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, page)))(t)
		for _, match := range place.FindAllStringSubmatch(string(content), -1) {
			found++
			if names[match[1]] {
				continue
			}
			if _, err := os.Stat(filepath.Join(documents.Repository, member.ReplaceAllString(match[1], ""))); err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names only", found)
	}
}

// ARCHITECTURE.md has a row for every package of ours, by its name at least. Those of a table, which it names as one, need none, nor do those for tests.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	content := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "ARCHITECTURE.md")))(t)
	byTable := regexp.MustCompile(`^internal/(target|apiserver/registry)/\w+$|test$|/testdata/`)
	packages := map[string]bool{}
	for _, top := range []string{"cmd", "internal"} {
		testkit.Must(t, filepath.WalkDir(filepath.Join(documents.Repository, top), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				folder, _ := filepath.Rel(documents.Repository, filepath.Dir(path))
				packages[filepath.ToSlash(folder)] = true
			}
			return err
		}))
	}
	if len(packages) < 100 {
		t.Errorf("%d packages only", len(packages))
	}
	for folder := range packages {
		if !byTable.MatchString(folder) && !regexp.MustCompile("[/{,`]"+regexp.QuoteMeta(filepath.Base(folder))+"[`,}/]").Match(content) {
			t.Errorf("ARCHITECTURE.md does not name the package %s", folder)
		}
	}
}
