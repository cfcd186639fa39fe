package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A package of more than minLines lines runs minCoverage per cent of its statements by the tests in its own folder. test/arch/untested.txt
// has the exceptions.
const (
	minLines    = 100
	minCoverage = 40
	modules     = "github.com/credence-id/credence/"
)

// uncovered returns a failure for each package whose own tests run too few of its statements.
func uncovered(top string, covered map[string]float64) ([]failure, error) {
	excepted, err := os.ReadFile(filepath.Join(top, "test", "arch", "untested.txt"))
	if err != nil {
		return nil, err
	}
	var found []failure
	for _, pkg := range slices.Sorted(maps.Keys(covered)) {
		folder := strings.TrimPrefix(pkg, modules)
		lines, err := codeLines(filepath.Join(top, folder))
		if err != nil {
			return nil, err
		}
		listed := strings.Contains("\n"+string(excepted), "\n"+folder+" ")
		switch enough := covered[pkg] >= minCoverage; {
		case listed && enough:
			found = append(found, failure{pkg: pkg, output: "its own tests run enough of its statements: take its line out of test/arch/untested.txt"})
			continue
		case listed || enough || lines <= minLines || strings.HasPrefix(folder, "api/") || strings.HasPrefix(folder, "test/") || strings.HasSuffix(folder, "test"):
			continue
		}
		found = append(found, failure{pkg: pkg, output: fmt.Sprintf("its own tests run %.0f %% of its statements; at least %d %% are wanted: add tests in %s",
			covered[pkg], minCoverage, folder)})
	}
	return found, nil
}

// codeLines counts the lines of a package that are neither blank, comments, generated nor tests.
func codeLines(folder string) (int, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, err
	}
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
			continue
		}
		content, err := os.Open(file)
		if err != nil {
			return 0, err
		}
		for scanner := bufio.NewScanner(content); scanner.Scan(); {
			if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		_ = content.Close()
	}
	return lines, nil
}
