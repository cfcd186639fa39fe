package main

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tests are the results that go test printed as events.
type tests struct {
	passed, failedTests, skipped int
	failures                     []failure
	times                        []timing
	covered                      map[string]float64 // per cent of a package's statements
}

// failure is a test, or a package, that failed, with the end of what it printed.
type failure struct{ pkg, test, output string }

// timing is how long a test took.
type timing struct {
	pkg, test string
	took      time.Duration
}

// event is one line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

var coverage = regexp.MustCompile(`coverage: ([0-9.]+)% of statements`)

// read reads events until their end. Other lines are kept as the output of the part.
func (t *tests) read(events io.Reader) {
	t.covered = map[string]float64{}
	output := map[[2]string]*strings.Builder{}
	text := func(pkg, test string) *strings.Builder {
		key := [2]string{pkg, test}
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		return output[key]
	}
	failedIn := map[string]bool{} // packages with a test that failed
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) != nil {
			text("", "").Write(line)
		}
		pkg := e.Package
		if pkg == "" {
			pkg, _, _ = strings.Cut(e.ImportPath, " ")
		}
		switch e.Action {
		case "output", "build-output":
			text(pkg, e.Test).WriteString(e.Output)
			if found := coverage.FindStringSubmatch(e.Output); found != nil {
				t.covered[pkg], _ = strconv.ParseFloat(found[1], 64)
			}
		case "pass", "fail", "skip":
			t.end(e, pkg, failedIn, text)
		}
		if err != nil {
			return
		}
	}
}

// end counts what ended. A test above one that failed, and a package with one, are not reported again.
func (t *tests) end(e event, pkg string, failedIn map[string]bool, text func(pkg, test string) *strings.Builder) {
	top := e.Test != "" && !strings.Contains(e.Test, "/")
	if top {
		t.times = append(t.times, timing{pkg, e.Test, time.Duration(e.Elapsed * float64(time.Second))})
	}
	switch {
	case e.Action == "fail":
		if top {
			t.failedTests++
		}
		if !failedIn[pkg+" "+e.Test] {
			t.failures = append(t.failures, failure{pkg, e.Test, text(pkg, e.Test).String() + buildOutput(e, text, pkg)})
		}
		for name := e.Test; name != ""; {
			name = name[:max(0, strings.LastIndex(name, "/"))]
			failedIn[pkg+" "+name] = true
		}
	case top && e.Action == "pass":
		t.passed++
	case top && e.Action == "skip":
		t.skipped++
	}
}

// buildOutput is what the compiler printed, if a package was not built.
func buildOutput(e event, text func(pkg, test string) *strings.Builder, pkg string) string {
	if e.Test != "" {
		return ""
	}
	return text(pkg+".test", "").String()
}
