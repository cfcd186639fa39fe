package workloadidentity

import (
	"testing"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Whatever is accepted has no number that the machinery's reading of it would change once more.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1", "a: 18446744073709551615", "a: 0xffffffffffffffff", "- 1e400", "{a: [{b: !!float 1, c: !!binary gICA}]}", "1.5: x", "a: 5_0.5e-4_0",
		"!!binary YQ==: 1", "<<: {a: .inf}", "? [a]\n: 017", "a: !!int '1'", "a: ! 1", "0: 000001000000000000000000000", "a: |\n  1e400\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var document yaml.Node
		if yaml.Unmarshal(text, &document) != nil || len(CheckYAML(&document)) > 0 {
			return
		}
		if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode || hasAlias(&document) {
			return
		}
		read, err := sigsyaml.YAMLToJSON(text)
		if err != nil {
			return
		}
		if err := checkText(read); err != nil {
			t.Fatalf("%q was read as %s, which %v", text, read, err)
		}
	})
}

func hasAlias(node *yaml.Node) bool {
	for _, child := range node.Content {
		if hasAlias(child) {
			return true
		}
	}
	return node.Kind == yaml.AliasNode
}
