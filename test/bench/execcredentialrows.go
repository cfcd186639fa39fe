package main

import "fmt"

// clientFigure is a number that both libraries come to.
type clientFigure struct {
	what, unit string
	benchmark  string
	metric     string
	// per is how many of the metric's unit are one of the row's.
	per    float64
	target target
}

const (
	nanosecondsPerMicro = 1e3
	nanosecondsPerMilli = 1e6
	allAtOnce           = "100 requests at once, "
	runsOfProgram       = ": runs of the program"
)

// clientFigures are those that are compared one to one. One run of the program is enough for 100 requests, whatever happens.
var clientFigures = []clientFigure{
	{"allocations per cached request", "B", "CachedRequest", "B/op", 1, target{}},
	{allAtOnce + "the first" + runsOfProgram, "", "Storm/first", "runs/storm", 1, atMost(1)},
	{allAtOnce + "the first: time", "ms", "Storm/first", "ns/op", nanosecondsPerMilli, target{}},
	{allAtOnce + "expired output" + runsOfProgram, "", "Storm/expired", "runs/storm", 1, atMost(0.01)},
	{allAtOnce + "expired output: time", "ms", "Storm/expired", "ns/op", nanosecondsPerMilli, target{}},
	{allAtOnce + "program fails" + runsOfProgram, "", "Storm/failure", "runs/storm", 1, atMost(0.01)},
	{allAtOnce + "program fails: time", "ms", "Storm/failure", "ns/op", nanosecondsPerMilli, target{}},
	{allAtOnce + "token revoked" + runsOfProgram, "", "Storm/revoked", "runs/storm", 1, atMost(1)},
	{allAtOnce + "token revoked: requests that fail", "", "Storm/revoked", "failures/storm", 1, atMost(0)},
	{allAtOnce + "token revoked: time", "ms", "Storm/revoked", "ns/op", nanosecondsPerMilli, target{}},
	{"set-up with authorities of 200 KiB: time", "µs", "SetUp", "ns/op", nanosecondsPerMicro, atMost(0.1)},
	{"set-up with authorities of 200 KiB: allocations", "B", "SetUp", "B/op", 1, atMost(0.1)},
	{fmt.Sprintf("memory per config, %d that are used", usedConfigs), "B", "DistinctConfigs/used", "B-kept/config", 1, target{}},
	{fmt.Sprintf("memory per config, %d that are forgotten", forgottenConfigs), "B", "DistinctConfigs/forgotten", "B-kept/config", 1, target{}},
}

// clientRows are the rows of what was measured with all CPUs, and with one where there are more.
func clientRows(all figures, cpus int) ([]row, error) {
	m := &medians{figures: all}
	rows := cachedRows(m, cpus)
	for _, f := range clientFigures {
		rows = append(rows, row{
			what: f.what, unit: f.unit, peer: libraryPeer, target: f.target,
			ours:   m.of(f.benchmark+"/"+libraryOurs, cpus, f.metric) / f.per,
			theirs: m.of(f.benchmark+"/"+libraryPeer, cpus, f.metric) / f.per,
		})
	}
	return rows, m.err
}

// cachedBytes is what a cached request may allocate, without the caller's clone and the server's response.
const cachedBytes = 432

// cachedRows compare a request with a limit, with client-go's and one copy of a request, which an http.RoundTripper has to make before it
// changes anything, and client-go does not; and what more CPUs bring with what they bring to the copy, which shares nothing.
func cachedRows(m *medians, cpus int) []row {
	beside := func(what, unit, metric string, cpus int) row {
		took := func(library string) float64 { return m.of("CachedRequest/"+library, cpus, metric) }
		return row{
			what: what, unit: unit, ours: took(libraryOurs),
			peer: "client-go and one clone", theirs: took(libraryPeer) + took(libraryClone), target: atMost(1),
		}
	}
	added := m.of("CachedRequest/"+libraryOurs, 1, "B/op") - m.of("CachedRequest/"+libraryStub, 1, "B/op")
	const request, cpu = "cached request, ", "CPU per cached request, "
	rows := []row{
		{what: "allocations per cached request, added by the library", unit: "B", ours: added, peer: "limit", theirs: cachedBytes, target: atMost(1)},
		beside("allocations per cached request, with the copy", "B", "B/op", 1),
		beside(request+onCPUs(1), "ns", "ns/op", 1), beside(cpu+onCPUs(1), "ns", "cpu-ns/op", 1),
	}
	if cpus == 1 {
		return rows
	}
	return append(rows, beside(request+onCPUs(cpus), "ns", "ns/op", cpus), beside(cpu+onCPUs(cpus), "ns", "cpu-ns/op", cpus), row{
		what: request + onCPUs(cpus) + ": times as fast as on 1", ours: m.faster("CachedRequest/"+libraryOurs, cpus),
		peer: "clone", theirs: m.faster("CachedRequest/"+libraryClone, cpus), target: atLeast(0.9),
	})
}

func onCPUs(n int) string {
	if n == 1 {
		return "on 1 CPU"
	}
	return fmt.Sprintf("on %d CPUs", n)
}
