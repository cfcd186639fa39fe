package documents

import "testing"

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		want, got string
		matches   bool
	}{
		{"", "", true}, {"", "x\n", false}, {"a\n", "a\n", true}, {"a\n", "a\nb\n", false}, {"a…c\n", "abbc\n", true},
		{"a…c\n", "ab\nbc\n", false}, {"a\n…\n", "a\nb\nc\n", true}, {"a\n…\n", "b\n", false}, {"a.c\n", "abc\n", false},
		{"AGE   READY\n", "AGE    READY\n", true}, {"a   …  c   d\n", "a  bbbbb  c  d\n", true}, {"a  b\n", "a b\n", false}, {"  a: b\n", "    a: b\n", false},
	} {
		if pattern(test.want).MatchString(test.got) != test.matches {
			t.Errorf("pattern(%q) on %q: want %v", test.want, test.got, test.matches)
		}
	}
}

// A machine on which a command takes more than two seconds shows more than the document.
func TestProgressIsNotOutput(t *testing.T) {
	Reader{}.follow(t, "slow.md", []example{
		{command: "echo waiting for the API server https://x ... >&2; echo a", want: "a\n"},
		{command: "echo waiting for the checks ... >&2", want: ""},
	})
}
