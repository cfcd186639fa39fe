package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		target target
		ratio  float64
		want   string
	}{
		{target{}, 9, ""},
		{atMost(1.15), 1.15, "≤ 1.15: met"},
		{atMost(1.15), 1.16, "≤ 1.15: MISSED"},
		{atMost(0), 0, "≤ 0: met"},
		{atMost(0), 0.001, "≤ 0: MISSED"},
		{atLeast(3), 3, "≥ 3: met"},
		{atLeast(3), 2.99, "≥ 3: MISSED"},
	} {
		if got := test.target.verdict(test.ratio); got != test.want {
			t.Errorf("%+v of %v: %q, want %q", test.target, test.ratio, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := &table{about: "a machine"}
	table.add(row{what: "one", unit: "µs", ours: 12.345, peer: "other", theirs: 24.69, target: atMost(0.6)})
	table.add(row{what: "two", ours: 1234.5, peer: "other", theirs: 1000})
	want := `a machine

|  | ours | peer's | peer | ratio | target |
|---|--:|--:|---|--:|---|
| one | 12.3 µs | 24.7 µs | other | 0.50 | ≤ 0.6: met |
| two | 1234 | 1000 | other | 1.23 |  |
`
	if got := table.markdown(); got != want {
		t.Errorf("markdown:\n%s\nwant:\n%s", got, want)
	}
	text := strings.Split(table.text(), "\n")
	if len(text) != 6 || strings.Index(text[3], "12.3 µs") != strings.Index(text[4], "1234") {
		t.Errorf("text is not in columns:\n%s", strings.Join(text, "\n"))
	}
}
