package target_test

import (
	"testing"

	"github.com/credence-id/credence/internal/target"
)

func TestShort(t *testing.T) {
	short := target.Short{Fields: []string{"role", "region"}}
	const head = `{"apiVersion":"x.authentication.gardener.cloud/v1alpha1","kind":"Config",`
	for text, want := range map[string]string{
		"":                          "",
		"arn:x:role/a":              head + `"role":"arn:x:role/a"}`,
		"role=arn:x:role/a":         head + `"role":"arn:x:role/a"}`,
		"a,b=c,d":                   head + `"role":"a,b=c,d"}`,
		"a,region=eu-1":             head + `"region":"eu-1","role":"a"}`,
		"region=eu-1,role=a&b":      head + `"region":"eu-1","role":"a&b"}`,
		"a\",\"region\":\"x":        head + `"role":"a\",\"region\":\"x"}`,
		"a,region=x,apiVersion=y":   head + `"region":"x,apiVersion=y","role":"a"}`,
		"a,role=b":                  "error",
		"a,region=x,region=y,etc=z": "error",
	} {
		got, err := short.ProviderConfig("x", text)
		if err != nil {
			got = []byte("error")
		}
		if string(got) != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
	if _, err := (target.Short{}).ProviderConfig("x", "y"); err == nil {
		t.Error("a system without fields takes some")
	}
}
