package arch_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// untestedLines is up to how many lines of code a package needs no test of its own.
	untestedLines = 100
	// mostUntested is how many packages may be listed in untested.txt.
	mostUntested = 6
)

// sources is what a folder has of a package.
type sources struct {
	lines int // of code: without blank ones, comments, and generated files
	tests bool
}

// go test ./that/package fails when that package is broken. The runner of all tests checks how many of its statements these tests run.
func TestPackagesAreTestedBesideTheirCode(t *testing.T) {
	listed := untested(t)
	all := folders(t)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		if s := all[folder]; s.lines > untestedLines && !s.tests && listed[folder] == "" {
			t.Errorf("%s has %d lines of code and no test in its folder: move its tests there", folder, s.lines)
		}
	}
	for folder := range listed {
		if all[folder].lines <= untestedLines {
			t.Errorf("untested.txt: %s is gone, or needs no test of its own: take the line away", folder)
		}
	}
	if len(listed) > mostUntested {
		t.Errorf("untested.txt lists %d packages, at most %d may be listed", len(listed), mostUntested)
	}
	if s := all["internal/issuer"]; len(all) < 150 || s.lines <= untestedLines || !s.tests || all["devcluster/internal/node"].lines == 0 {
		t.Errorf("%d packages were found, which are fewer than there are, and internal/issuer as %+v", len(all), s)
	}
}

// untested are the packages that are listed, each with the reason.
func untested(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("untested.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		folder, reason, _ := strings.Cut(line, " ")
		if listed[folder] = reason; len(reason) < 20 {
			t.Errorf("untested.txt: %s is listed without a reason", folder)
		}
	}
	return listed
}

// folders are the packages that need tests of their own, by their paths: those of the module, and of the modules devcluster,
// execcredential and release. Types of the API, and packages that are for tests, need none.
func folders(t *testing.T) map[string]sources {
	t.Helper()
	all := map[string]sources{}
	for _, top := range []string{"cmd", "deploy", "devcluster", "execcredential", "internal", "release"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || strings.HasSuffix(entry.Name(), "test")):
				return filepath.SkipDir
			case entry.IsDir() || path.Ext(entry.Name()) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated"):
				return nil
			}
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../../")
			s := all[folder]
			if strings.HasSuffix(entry.Name(), "_test.go") {
				s.tests = true
			} else {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				s.lines += codeLines(text)
			}
			all[folder] = s
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func codeLines(text []byte) int {
	lines := 0
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			lines++
		}
	}
	return lines
}
