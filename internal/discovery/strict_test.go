package discovery

import (
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":[{"b":null},1.5e300,"\u00e9"]} ` + "\n": "",
		`{} {}`:               "after the end",
		`{}x`:                 "after the end",
		`{"a":1,}`:            "is not JSON",
		`{"a":`:               "is not complete JSON",
		`[`:                   "is not complete JSON",
		``:                    "is not complete JSON",
		`{1:2}`:               "is not JSON",
		`{"a":{"b":1,"b":2}}`: `has the member "b" twice`,
		"\"\xc3\"":            "is not UTF-8",
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1): "nested deeper than 16 levels",
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth):     "",
	} {
		err := checkJSON([]byte(data))
		if want == "" {
			if err != nil {
				t.Errorf("%.40s: %v", data, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want an error with %q", data, err, want)
		}
	}
}
