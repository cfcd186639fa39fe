package execcredential_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/execcredential"
)

// extended is a kubeconfig whose cluster has an extension, after other lines.
func extended(before, extension string) []byte {
	return []byte(before + "\nusers: [{name: u, user: {exec: {command: /x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]\n" +
		"clusters: [{name: c, cluster: {extensions: [{name: client.authentication.k8s.io/exec, extension: " + extension + "}]}}]\n")
}

func extensionOf(data []byte) (string, error) {
	config, err := execcredential.ParseKubeconfig(data, "", execcredential.Selection{User: "u", Cluster: "c"})
	return string(config.Cluster.Extension), err
}

// A small file must not cost much time or memory, whatever it refers to.
func TestYAMLBounds(t *testing.T) {
	keys := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("k%d: 1", i))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	lists := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	// Each of the nine lists after the first refers to the one before ten times.
	bomb := "bomb:\n- &a0 [x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("- &a%d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	long := "long: &long " + strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		before, extension string
		want              string // of the error; empty for none
	}{
		"1000 keys":                   {extension: keys(1000)},
		"1001 keys":                   {extension: keys(1001), want: "has more than 1000 keys"},
		"1001 keys elsewhere":         {before: "preferences: " + keys(1001), extension: "1", want: "has more than 1000 keys"},
		"depth 200":                   {extension: lists(200)},
		"depth 202":                   {extension: lists(202), want: "too large or nested too deeply"},
		"90,000 values":               {extension: "[" + strings.Repeat("1,", 90_000) + "]"},
		"110,000 values":              {extension: "[" + strings.Repeat("1,", 110_000) + "]", want: "too large or nested too deeply"},
		"aliases of 10,000 values":    {before: bomb, extension: "*a4"},
		"aliases of a billion":        {before: bomb, extension: "*a9", want: "too large or nested too deeply"},
		"an alias of itself":          {extension: "&a [*a]", want: "too large or nested too deeply"},
		"15 aliases of a megabyte":    {before: long, extension: "[" + strings.Repeat("*long ,", 15) + "]"},
		"1,000 aliases of a megabyte": {before: long, extension: "[" + strings.Repeat("*long ,", 1000) + "]", want: "too large or nested too deeply"},
	} {
		_, err := extensionOf(extended(c.before, c.extension))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// The program gets what client-go would give it.
func TestExtensionsAsJSON(t *testing.T) {
	for name, c := range map[string]struct{ before, extension, want string }{
		"booleans of YAML 1.1": {extension: "[yes, No, on, OFF, 'yes', !!str on]", want: `[true,false,true,false,"yes","on"]`},
		"numbers":              {extension: "[1, 0x10, 1.5, 1e3, '1', ~]", want: `[1,16,1.5,1000,"1",null]`},
		"dates":                {extension: "[2030-01-01, 2030-01-01T00:00:00Z]", want: `["2030-01-01","2030-01-01T00:00:00Z"]`},
		"keys":                 {extension: "{b: 1, a: 2, 7: 3, true: 4}", want: `{"7":3,"a":2,"b":1,"true":4}`},
		"aliases":              {before: "x: &x {a: 1}", extension: "[*x, *x]", want: `[{"a":1},{"a":1}]`},
		"merged":               {before: "x: &x {a: 1, b: 1}", extension: "{<<: *x, a: 2}", want: `{"a":2,"b":1}`},
		"several merged":       {before: "x: [&x {a: 1}, &y {a: 2, b: 2}]", extension: "{<<: [*x, *y]}", want: `{"a":1,"b":2}`},
		"text of many lines":   {extension: `"a\n  b: c\n# d\n"`, want: `"a\n  b: c\n# d\n"`},
		"a block":              {before: "x: &x\n- key: |2\n     deep\n    text\n- |+\n\n  line\n", extension: "*x", want: `[{"key":" deep\ntext\n"},"\nline\n\n"]`},
		"a folded block":       {before: "x: &x >-\n  one\n  two\n\n  three\n", extension: "[*x]", want: `["one two\nthree"]`},
		"bytes":                {before: "x: &x !!binary |\n  aGVs\n  bG8=\n", extension: "[*x]", want: `["hello"]`},
		"a comment":            {extension: "{a: 1 # b: 2\n}", want: `{"a":1}`},
	} {
		got, err := extensionOf(extended(c.before, c.extension))
		expect(t, err, name)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestExtensionsThatAreNotJSON(t *testing.T) {
	for _, extension := range []string{".nan", ".inf", "{a: 1, a: s3cr3t}", "{[1]: s3cr3t}", "{a: {~: s3cr3t}}"} {
		_, err := extensionOf(extended("", extension))
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", extension, err)
		}
	}
}
