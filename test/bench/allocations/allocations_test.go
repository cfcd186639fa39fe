package allocations

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the baseline anew")

// runs is how often an operation is done; what it allocates is the mean, cut to a whole number, so that a pool that the garbage
// collector empties now and then does not count.
const runs = 100

const hint = "find what allocates, or run make bench-allocations ARGS=-update and say in the commit why it must"

var baseline = filepath.Join("testdata", "allocations.txt")

func TestAllocations(t *testing.T) {
	got := measure(t)
	if *update {
		write(t, got)
		return
	}
	content, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parse(string(content))
	if err != nil {
		t.Fatalf("%s: %v", baseline, err)
	}
	for _, complaint := range compare(want, got) {
		t.Error(complaint)
	}
	for name, count := range got {
		t.Logf("%s: %d, baseline %d", name, count, want[name])
	}
}

func measure(t *testing.T) map[string]int {
	got := map[string]int{}
	for _, o := range operations(t) {
		var failed error
		got[o.name] = int(testing.AllocsPerRun(runs, func() {
			if err := o.once(); err != nil {
				failed = err
			}
		}))
		if failed != nil {
			t.Fatalf("%s: %v", o.name, failed)
		}
	}
	return got
}

// compare returns the faults: operations that allocate more than in the baseline, and names that are in one of the two
// only. To allocate less is no fault.
func compare(want, got map[string]int) []string {
	var complaints []string
	for name, count := range got {
		switch was, ok := want[name]; {
		case !ok:
			complaints = append(complaints, fmt.Sprintf("%s: %d allocations, and the baseline does not have it: %s", name, count, hint))
		case count > was:
			complaints = append(complaints, fmt.Sprintf("%s: %d allocations, the baseline has %d: %s", name, count, was, hint))
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			complaints = append(complaints, fmt.Sprintf("%s: is in the baseline, but is not measured: %s", name, hint))
		}
	}
	slices.Sort(complaints)
	return complaints
}

// parse reads lines of a count, a tab and a name.
func parse(text string) (map[string]int, error) {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		number, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		count, err := strconv.Atoi(number)
		if !ok || err != nil || count < 0 {
			return nil, fmt.Errorf("%q is not a count, a tab and a name", line)
		}
		counts[name] = count
	}
	return counts, nil
}

func write(t *testing.T, counts map[string]int) {
	var lines []string
	for name, count := range counts {
		lines = append(lines, fmt.Sprintf("%d\t%s\n", count, name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[strings.Index(a, "\t"):], b[strings.Index(b, "\t"):]) })
	if err := os.WriteFile(baseline, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCompare(t *testing.T) {
	want, err := parse("3\tgrown\n3\tshrunk\n3\tsame\n3\tgone\n")
	if err != nil {
		t.Fatal(err)
	}
	got := compare(want, map[string]int{"grown": 4, "shrunk": 2, "same": 3, "new": 1})
	starts := []string{"gone: is in the baseline", "grown: 4 allocations, the baseline has 3", "new: 1 allocations"}
	if len(got) != len(starts) {
		t.Fatalf("%d complaints, want %d: %q", len(got), len(starts), got)
	}
	for i, start := range starts {
		if !strings.HasPrefix(got[i], start) {
			t.Errorf("complaint %q, want %q…", got[i], start)
		}
	}
	if _, err := parse("many\tname\n"); err == nil {
		t.Error("a count that is not a number was read")
	}
}
