package wording_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/wording"
)

const signature = "c2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJl"

func TestRedactHidesTokens(t *testing.T) {
	for text, want := range map[string]string{
		"Bearer eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0." + signature + "!": "Bearer [redacted]!",
		"cut off: eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOi":                       "cut off: [redacted]",
		"encrypted eyJhbGciOiJSU0EifQ.a.b.c.d":                           "encrypted [redacted]",
		"another abcdefghijk.abcdefghijk." + signature:                   "another [redacted]",
		"the key eyJhbGciOiJSUzI1NiJ9":                                   "the key eyJhbGciOiJSUzI1NiJ9",
		"id.example.com and v1.37.1":                                     "id.example.com and v1.37.1",
	} {
		if got := wording.Redact(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// A text of others moves no cursor, begins no line, and is not too long.
func TestTextsOfOthers(t *testing.T) {
	const text = "a\x1b[2Jb\n\tc\u202ed\U000e0001"
	if got, want := wording.Printable(text), `a\u001b[2Jb`+"\n\t"+`c\u202ed\U000e0001`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wording.OneLine("a\nb\tc"), `a\nb\tc`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wording.Continued("a\nb"), "a\n    b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for text, want := range map[string]string{"äöü": "äöü", "äöüß": "äöü…", "a\xffb": "a\ufffdb"} {
		if got := wording.AbbreviateTo(text, 3); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		at           time.Time
		moment, ages string
	}{
		{now.Add(-5 * time.Minute), "2026-07-01T11:55:00Z (5m ago)", "5m ago"},
		{now.Add(90 * time.Minute), "2026-07-01T13:30:00Z (in 90m)", "in 90m"},
		{time.Time{}, "(not set)", "-"},
	} {
		if got := wording.Moment(test.at, now); got != test.moment {
			t.Errorf("%q, want %q", got, test.moment)
		}
		if got := wording.Age(&metav1.Time{Time: test.at}, now); got != test.ages {
			t.Errorf("%q, want %q", got, test.ages)
		}
	}
	local := metav1.NewTime(now.In(time.FixedZone("east", 3600)))
	if got := wording.Instant(&local, now, "never"); got != "2026-07-01T12:00:00Z (in 0s)" || wording.Instant(nil, now, "never") != "never" {
		t.Errorf("%q", got)
	}
}

func TestCountsAndLists(t *testing.T) {
	for n, want := range map[int]string{0: "0 pods", 1: "1 pod", 2: "2 pods"} {
		if got := wording.Plural(n, "pod", "pods"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := wording.Some([]string{"a", "b", "c"}) + "; " + wording.Some([]string{"a", "b", "c", "d", "e"}); got != "a, b, c; a, b, c and 2 more" {
		t.Errorf("%q", got)
	}
	if got := wording.Quoted("a", `"`) + wording.OrDash("") + wording.OrDash("x"); got != `"a", "\""-x` {
		t.Errorf("%q", got)
	}
}
