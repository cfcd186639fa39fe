package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// never is a clock by which there is always time.
func never() bool { return false }

func TestClientRoundsGoBackAndForth(t *testing.T) {
	var order []string
	if _, err := clientRounds(t.Context(), 3, 8, func(_ context.Context, pattern string, count int, cpus []int) ([]goBenchmark, error) {
		if name, found := strings.CutPrefix(pattern, "^BenchmarkCachedRequest$/"); found {
			order = append(order, name)
			if count < 10000 || !slices.Equal(cpus, []int{1, 8}) {
				t.Errorf("%d times on %v CPUs", count, cpus)
			}
		} else if !slices.Equal(cpus, []int{8}) {
			t.Errorf("%s on %v CPUs, want all 8", pattern, cpus)
		}
		return nil, nil
	}, never); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("^execcredential$ ^client-go$ ^clone$ ^stub$ ^stub$ ^clone$ ^client-go$ ^execcredential$ ^execcredential$ ^client-go$ ^clone$ ^stub$")
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// However slow the machine is, each library has been the first once.
func TestClientRoundsEndInTime(t *testing.T) {
	done := map[string]int{}
	run := func(_ context.Context, pattern string, _ int, _ []int) ([]goBenchmark, error) {
		done[pattern]++
		return nil, nil
	}
	if _, err := clientRounds(t.Context(), 100, 2, run, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	for pattern, times := range done {
		if times < 2 || times > 7 {
			t.Errorf("%s was run %d times", pattern, times)
		}
	}
	if len(done) != 14 {
		t.Errorf("%d benchmarks were run: %v", len(done), done)
	}
}

func TestClientRoundsEndWithAnError(t *testing.T) {
	broken, runs := errors.New("broken"), 0
	_, err := clientRounds(t.Context(), 9, 2, func(context.Context, string, int, []int) ([]goBenchmark, error) {
		runs++
		return nil, broken
	}, never)
	if !errors.Is(err, broken) || runs != 1 {
		t.Errorf("error %v after %d runs", err, runs)
	}
}

// measured is an output of all benchmarks on 1 and on 4 CPUs, with changes.
func measured(t *testing.T, changes ...string) figures {
	t.Helper()
	out := ""
	for _, cpus := range []string{"", "-4"} {
		for library, ns := range map[string]int{"execcredential": 1700, "client-go": 1000, "clone": 800, "stub": 900} {
			out += fmt.Sprintf("BenchmarkCachedRequest/%s%s 9 %d ns/op %d cpu-ns/op 1 B/op\n", library, cpus, ns, 2*ns)
		}
	}
	for _, library := range []string{"execcredential", "client-go"} {
		for storm, runs := range map[string]string{"first": "1 1", "revoked": "1 1", "expired": "1 100", "failure": "1 100"} {
			ours, theirs, _ := strings.Cut(runs, " ")
			out += fmt.Sprintf("BenchmarkStorm/%s/%s-4 9 2000000 ns/op %s runs/storm %d failures/storm\n", storm, library,
				map[bool]string{true: ours, false: theirs}[library == "execcredential"], strings.Count(storm+library, "revokedclient-go"))
		}
		out += fmt.Sprintf("BenchmarkSetUp/%s-4 9 %d ns/op 7 B/op\n", library, map[bool]int{true: 100, false: 5000}[library == "execcredential"])
		out += fmt.Sprintf("BenchmarkDistinctConfigs/used/%s-4 9 2 B-kept/config\nBenchmarkDistinctConfigs/forgotten/%s-4 9 3 B-kept/config\n", library, library)
	}
	list, err := readBenchmarks(strings.NewReplacer(changes...).Replace(out))
	if err != nil {
		t.Fatal(err)
	}
	all := figures{}
	all.add(list)
	return all
}

func TestClientRows(t *testing.T) {
	verdicts := func(all figures) string {
		rows, err := clientRows(all, 4)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, r := range rows {
			if cells := r.cells(); strings.Contains(cells[5], "MISSED") {
				text += cells[0] + "; "
			}
		}
		return text
	}
	const allocations = "set-up with authorities of 200 KiB: allocations; " // both have 7 B
	if got := verdicts(measured(t)); got != allocations {
		t.Errorf("missed: %s", got)
	}
	for _, c := range []struct{ from, to, missed string }{
		{"CachedRequest/execcredential 9 1700 ns/op 3400 cpu-ns/op 1 ", "CachedRequest/execcredential 9 1700 ns/op 3400 cpu-ns/op 434 ", "allocations per cached request, added by the library; allocations per cached request, with the copy; "},
		{"CachedRequest/execcredential 9 1700", "CachedRequest/execcredential 9 1801", "cached request, on 1 CPU; "},
		{"CachedRequest/execcredential-4 9 1700", "CachedRequest/execcredential-4 9 1801", "cached request, on 4 CPUs; "},
		{"CachedRequest/execcredential-4 9 1700 ns/op 3400", "CachedRequest/execcredential-4 9 1700 ns/op 3601", "CPU per cached request, on 4 CPUs; "},
		{"CachedRequest/clone-4 9 800", "CachedRequest/clone-4 9 701", "cached request, on 4 CPUs: times as fast as on 1; "},
		{"Storm/first/execcredential-4 9 2000000 ns/op 1 ", "Storm/first/execcredential-4 9 2000000 ns/op 1.2 ", "100 requests at once, the first: runs of the program; "},
		{"Storm/expired/execcredential-4 9 2000000 ns/op 1 ", "Storm/expired/execcredential-4 9 2000000 ns/op 2 ", "100 requests at once, expired output: runs of the program; "},
		{"Storm/failure/execcredential-4 9 2000000 ns/op 1 ", "Storm/failure/execcredential-4 9 2000000 ns/op 2 ", "100 requests at once, program fails: runs of the program; "},
		{"Storm/revoked/execcredential-4 9 2000000 ns/op 1 ", "Storm/revoked/execcredential-4 9 2000000 ns/op 2 ", "100 requests at once, token revoked: runs of the program; "},
		{"Storm/revoked/execcredential-4 9 2000000 ns/op 1 runs/storm 0", "Storm/revoked/execcredential-4 9 2000000 ns/op 1 runs/storm 1", "100 requests at once, token revoked: requests that fail; "},
		{"SetUp/execcredential-4 9 100", "SetUp/execcredential-4 9 501", "set-up with authorities of 200 KiB: time; "},
	} {
		if got := verdicts(measured(t, c.from, c.to)); strings.Replace(got, allocations, "", 1) != c.missed {
			t.Errorf("%s: missed %s", c.to, got)
		}
	}
}

func TestClientRowsOnOneCPU(t *testing.T) {
	all := figures{}
	for key, values := range measured(t) {
		key.cpus = 1
		all[key] = values
	}
	rows, err := clientRows(all, 1)
	if err != nil || len(rows) != 4+len(clientFigures) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// A benchmark that was given another name, or reports another unit, is not a row of zeros.
func TestClientRowsNeedAllFigures(t *testing.T) {
	without := func(left func(figure) bool) error {
		all := measured(t)
		for key := range all {
			if left(key) {
				delete(all, key)
			}
		}
		_, err := clientRows(all, 4)
		return err
	}
	for key := range measured(t) {
		if err := without(func(k figure) bool { return k.name == key.name }); err == nil || !strings.Contains(err.Error(), key.name) {
			t.Errorf("without %s: error %v", key.name, err)
		}
		if err := without(func(k figure) bool { return k.unit == key.unit }); err == nil || !strings.Contains(err.Error(), key.unit) {
			t.Errorf("without any %s: error %v", key.unit, err)
		}
	}
}
