package connection

import (
	"strings"
	"testing"
)

func FuzzParseContext(f *testing.F) {
	for _, seed := range []string{"serviceaccount/worker", "sa/", "SA/a/b", "pod/x", "/", "", "serviceaccount/../x", "serviceaccount/%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseObject(text)
		if err != nil {
			return
		}
		if got.Name == "" || strings.ContainsAny(got.Name, "/%") || got.Name == "." || got.Name == ".." {
			t.Errorf("name %q accepted", got.Name)
		}
		if kind, _, _ := strings.Cut(text, "/"); !strings.EqualFold(kind+"/"+got.Name, text) {
			t.Errorf("%q became %q", text, got.Name)
		}
	})
}
