package screen

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFold(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           {""},
		"short":                      {"short"},
		"one two three":              {"one two", "three"},
		"exactly10c more":            {"exactly10c", "more"},
		"a,b,c,d,e,f,g":              {"a,b,c,d,e,", "f,g"},
		"system:serviceaccount":      {"system:ser", "viceaccoun", "t"},
		"ümläüte wörter":             {"ümläüte", "wörter"},
		"team/credence-token-worker": {"team/crede", "nce-token-", "worker"},
	} {
		if got := Fold(text, 10); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// All text is there, each column keeps its place, and no line is wider than the table.
func TestTablesAreFolded(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("many words ", 30))
	rows := [][]string{{"NAME", "WHAT", "WHY"}, {"first", long, "short"}, {"second", "-", long}}
	got := fold(rows, Columns)
	if got[0][1] != "WHAT" || got[1][0] != "first" || got[2][0] != "" || len(got) < 10 {
		t.Errorf("%q", got)
	}
	var words [3]string
	for _, row := range got[1:] {
		width := 2 * gap
		for i, cell := range row {
			words[i] += " " + cell
			width += utf8.RuneCountInString(cell)
		}
		if width > Columns {
			t.Errorf("%d columns: %q", width, row)
		}
	}
	if all := strings.Join(strings.Fields(words[1]), " "); all != long+" -" {
		t.Errorf("%q", all)
	}
	// A key's ID is copied: it stays whole, and the text beside it is folded. A table that can not fit stays as it is.
	id := strings.Repeat("k", 43)
	if got := fold([][]string{{id, long}}, Columns); got[0][0] != id || len(got) < 3 {
		t.Errorf("%q", got)
	}
	if got := fold([][]string{{id, id, id, "many words"}}, Columns); len(got) != 1 || got[0][3] != "many words" {
		t.Errorf("%q", got)
	}
	if none := fold(nil, Columns); none != nil {
		t.Errorf("%q", none)
	}
}
