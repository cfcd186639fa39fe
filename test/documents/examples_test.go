package documents

import "testing"

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		want, got string
		matches   bool
	}{
		{"", "", true}, {"", "x\n", false}, {"a\n", "a\n", true}, {"a\n", "a\nb\n", false}, {"a…c\n", "abbc\n", true},
		{"a…c\n", "ab\nbc\n", false}, {"a\n…\n", "a\nb\nc\n", true}, {"a\n…\n", "b\n", false}, {"a.c\n", "abc\n", false},
	} {
		if pattern(test.want).MatchString(test.got) != test.matches {
			t.Errorf("pattern(%q) on %q: want %v", test.want, test.got, test.matches)
		}
	}
}
