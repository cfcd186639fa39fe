package main

import (
	"testing"
	"time"
)

// A pod without an account costs at most its limit, the webhook's process included.
func TestLimitOfPodsWithoutAnAccount(t *testing.T) {
	for aside, want := range map[time.Duration]string{100 * time.Microsecond: "≤ 1: met", 101 * time.Microsecond: "≤ 1: MISSED"} {
		var shown table
		gmsaAloneRows(&shown, map[string]result{
			"plain" + byNone: {cpu: 2 * time.Millisecond},
			"plain" + byOurs: {cpu: 2400 * time.Microsecond, aside: aside},
		})
		if last := shown.rows[len(shown.rows)-1].cells(); last[5] != want {
			t.Errorf("%s beside it: %q, want %q", aside, last, want)
		}
	}
}
