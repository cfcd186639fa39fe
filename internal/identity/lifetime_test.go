package identity

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

func TestLifetimesComplete(t *testing.T) {
	const m, h = time.Minute, time.Hour
	cases := []struct {
		name      string
		set, want Lifetimes
		refusal   string
	}{
		{"nothing set", Lifetimes{}, Lifetimes{10 * m, h, 48 * h}, ""},
		{"all set", Lifetimes{15 * m, 20 * m, 30 * m}, Lifetimes{15 * m, 20 * m, 30 * m}, ""},
		{"all equal", Lifetimes{h, h, h}, Lifetimes{h, h, h}, ""},
		{"minimum too short", Lifetimes{Min: 10*m - time.Second}, Lifetimes{}, "shorter than 10m0s"},
		{"negative minimum", Lifetimes{Min: -h}, Lifetimes{}, "shorter than 10m0s"},
		{"maximum under minimum", Lifetimes{Min: h, Default: h, Max: 30 * m}, Lifetimes{}, "maximum token lifetime 30m0s is shorter than the minimum 1h0m0s"},
		{"default under minimum", Lifetimes{Min: 2 * h}, Lifetimes{}, "default token lifetime 1h0m0s is not between"},
		{"default over maximum", Lifetimes{Default: 49 * h}, Lifetimes{}, "default token lifetime 49h0m0s is not between"},
		{"parts of a second", Lifetimes{Default: h + 1}, Lifetimes{}, "whole seconds"},
	}
	for _, c := range cases {
		got, err := c.set.Complete()
		switch {
		case c.refusal == "" && (err != nil || got != c.want):
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.refusal)
		}
	}
}

func TestGrant(t *testing.T) {
	lifetimes := testkit.Need(Lifetimes{}.Complete())(t)
	cases := []struct {
		requested, granted time.Duration
		shortened, refused bool
	}{
		{0, time.Hour, false, false},
		{10 * time.Minute, 10 * time.Minute, false, false},
		{10*time.Minute + 999*time.Millisecond, 10 * time.Minute, false, false},
		{48 * time.Hour, 48 * time.Hour, false, false},
		{48*time.Hour + 1, 48 * time.Hour, true, false},
		{1<<63 - 1, 48 * time.Hour, true, false},
		{10*time.Minute - 1, 0, false, true},
		{1, 0, false, true},
		{-time.Hour, 0, false, true},
		{-1 << 63, 0, false, true},
	}
	for _, c := range cases {
		granted, shortened, err := lifetimes.Grant(c.requested)
		if granted != c.granted || shortened != c.shortened || (err != nil) != c.refused {
			t.Errorf("%s: %s, %v, %v, want %s, %v, refused %v", c.requested, granted, shortened, err, c.granted, c.shortened, c.refused)
		}
		if err != nil && !strings.Contains(err.Error(), "10m0s") {
			t.Errorf("%s: the error does not name the minimum: %v", c.requested, err)
		}
	}
}
