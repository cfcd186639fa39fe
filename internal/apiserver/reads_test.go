package apiserver

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestReads(t *testing.T) {
	read := map[string]bool{}
	now := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	start := func() *reads {
		clear(read)
		return &reads{clock: now, of: map[string]func() bool{"workload clusters": func() bool { return read["clusters"] }, "context objects": func() bool { return read["objects"] }}}
	}
	check := func(r *reads, want string) {
		t.Helper()
		got := ""
		if err := r.Check(nil); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	r := start()
	check(r, "not read yet: context objects, workload clusters")
	read["clusters"] = true
	check(r, "not read yet: context objects")
	read["objects"] = true
	check(r, "")
	read["objects"] = false // a watch has ended
	check(r, "")

	now.SetTime(now.Now().Add(time.Hour))
	r = start()
	check(r, "not read yet: context objects, workload clusters")
	read["clusters"] = true
	now.SetTime(now.Now().Add(patience - 1))
	check(r, "not read yet: context objects")
	now.SetTime(now.Now().Add(1))
	check(r, "")
}
