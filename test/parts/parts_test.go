package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

const events = `{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Test":"TestOuter/inner","Output":"    a_test.go:7: broken\n"}
{"Action":"fail","Package":"m/a","Test":"TestOuter/inner","Elapsed":0.5}
{"Action":"output","Package":"m/a","Test":"TestOuter","Output":"--- FAIL: TestOuter\n"}
{"Action":"fail","Package":"m/a","Test":"TestOuter","Elapsed":0.6}
{"Action":"pass","Package":"m/a","Test":"TestOther","Elapsed":0.1}
{"Action":"skip","Package":"m/a","Test":"TestSkipped"}
{"Action":"output","Package":"m/a","Output":"coverage: 39.9% of statements\n"}
{"Action":"fail","Package":"m/a","Elapsed":1}
{"ImportPath":"m/b [m/b.test]","Action":"build-output","Output":"b.go:1: undefined: x\n"}
{"Action":"fail","Package":"m/b","Elapsed":0,"FailedBuild":"m/b [m/b.test]"}
not an event
`

// A failure is reported once, where it occurred, and so is a package that is not built.
func TestFailuresOfEvents(t *testing.T) {
	var got tests
	got.read(strings.NewReader(events))
	want := []failure{{"m/a", "TestOuter/inner", "    a_test.go:7: broken\n"}, {"m/b", "", "b.go:1: undefined: x\n"}}
	if diff := cmp.Diff(want, got.failures, cmp.AllowUnexported(failure{})); diff != "" {
		t.Error(diff)
	}
	if got.passed != 1 || got.failedTests != 1 || got.skipped != 1 || got.covered["m/a"] != 39.9 {
		t.Errorf("%d passed, %d failed, %d skipped, covered %v", got.passed, got.failedTests, got.skipped, got.covered)
	}
}

// A report ends with the failures, their commands and the counts.
func TestReport(t *testing.T) {
	var got tests
	got.read(strings.NewReader(events))
	var out strings.Builder
	if report(&out, []result{{part: part{name: "packages", dir: "release", tests: true, race: true}, tests: got}}, 1) {
		t.Error("a run with failures passed")
	}
	for _, want := range []string{
		"run it alone: CGO_ENABLED=1 go -C release test -vet=off -count=1 -race -run '^TestOuter$/^inner$' m/a\n",
		"b.go:1: undefined: x\n", "     0.6 s  m/a TestOuter\n", "\n1 passed, 1 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func newRunner(t *testing.T, out *strings.Builder) *runner {
	t.Helper()
	top := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(top, "bin", "log"), 0o755))
	s := testkit.Need(newScratch(filepath.Join(top, "bin")))(t)
	t.Cleanup(func() { _ = s.clean() })
	return &runner{top: top, scratch: s, out: out, now: func() time.Time { return time.Unix(0, 0) }}
}

// A part waits for parts of other lanes, and one that fails stops no other.
func TestPartsWaitForOthers(t *testing.T) {
	var out strings.Builder
	r := newRunner(t, &out)
	results := r.all(t.Context(), []part{
		{name: "first", lane: 1, command: "echo made > made && exit 3"},
		{name: "second", after: []string{"first"}, command: "grep made made"},
	})
	if results[0].err == nil || results[1].err != nil {
		t.Errorf("errors %v and %v, want one of the first alone", results[0].err, results[1].err)
	}
	if want := "FAIL  first                                            0s  1 parts left\nok    second                                           0s  0 parts left\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// An interrupt ends what runs, and processes that left their group.
func TestInterruptLeavesNoProcess(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no program setsid on this system")
	}
	var out strings.Builder
	r := newRunner(t, &out)
	ctx, interrupt := context.WithCancel(t.Context())
	var results []result
	var running sync.WaitGroup
	running.Go(func() {
		results = r.all(ctx, []part{{name: "hangs", command: "setsid bash -c 'touch $TMPDIR/ready; exec sleep 1000' >/dev/null 2>&1 & wait"}})
	})
	testkit.Wait(t, func(context.Context) error {
		_, err := os.Stat(filepath.Join(r.scratch.folder, "ready"))
		return err
	})
	interrupt()
	running.Wait()
	if results[0].err == nil {
		t.Error("the part that was interrupted passed")
	}
	testkit.Must(t, r.scratch.clean())
	if _, err := os.Stat(r.scratch.folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if left, _ := exec.Command("pgrep", "-f", r.scratch.folder).Output(); len(left) > 0 {
		t.Errorf("processes are left: %s", left)
	}
}

// Each part that another names exists in its tier, and is in another lane.
func TestTiers(t *testing.T) {
	for tier, list := range tiers {
		lanes := map[string]int{}
		for _, p := range list {
			lanes[p.name] = p.lane
		}
		if len(lanes) != len(list) {
			t.Errorf("%s: two parts have one name", tier)
		}
		for _, p := range list {
			for _, name := range p.after {
				if lane, found := lanes[name]; !found || lane == p.lane {
					t.Errorf("%s: %s comes after %q, which is in no other lane", tier, p.name, name)
				}
			}
		}
	}
}

// Packages that are tested too little are failures, unless they are small or excepted.
func TestUncovered(t *testing.T) {
	top := t.TempDir()
	long := "package p\n\n// comment\n" + strings.Repeat("var _ = 1\n", 101)
	for file, content := range map[string]string{
		"test/arch/untested.txt": "excepted because\nstronger because\n", "weak/a.go": long, "stronger/a.go": long, "strong/a.go": long, "excepted/a.go": long, "small/a.go": "package p\n",
		"weaktest/a.go": long,
	} {
		path := filepath.Join(top, file)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	got, err := uncovered(top, map[string]float64{modules + "weak": 39, modules + "strong": 40, modules + "excepted": 0, modules + "stronger": 40, modules + "small": 0, modules + "weaktest": 0})
	if err != nil || len(got) != 2 || got[0].pkg != modules+"stronger" || got[1].pkg != modules+"weak" {
		t.Errorf("%v, %v, want stronger, which is listed without need, and weak", got, err)
	}
}
