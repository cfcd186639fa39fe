package gcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListsOfGcloud(t *testing.T) {
	for _, values := range [][]string{{"a"}, {"a", "b"}, {"a,b", "c"}, {"^x^", "y"}, {",;|~#!%_+", "z"}} {
		if got := gcloudValues(gcloudList(values)); !cmp.Equal(got, values) {
			t.Errorf("%q is read as %q", gcloudList(values), got)
		}
	}
}

// gcloudValues reads a list as gcloud does: see gcloud topic escaping.
func gcloudValues(text string) []string {
	separator := ","
	if strings.HasPrefix(text, "^") {
		separator, text, _ = strings.Cut(text[1:], "^")
	}
	return strings.Split(text, separator)
}
