package execcredential

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	kubernetes "sigs.k8s.io/yaml"
)

const (
	mostKeys   = 1_000    // of one mapping: the YAML library compares each with each
	mostValues = 100_000  // of one extension or output, aliases followed
	mostText   = 16 << 20 // bytes of their scalars, aliases followed
	mostDepth  = 200
)

// yamlToJSON writes a YAML value as the JSON that Kubernetes' own clients make of it: keys in order, and the booleans of YAML 1.1.
func yamlToJSON(node *yaml.Node) (json.RawMessage, error) {
	values, err := (&expansion{}).of(node, 0)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, errNotJSON
	}
	converted, err := kubernetes.YAMLToJSON(text)
	if err != nil {
		return nil, errNotJSON // the library's error has values in it
	}
	return converted, nil
}

var errNotJSON = errors.New("can't be written as JSON: it has a key that is not a string, or a number without a value")

// expansion replaces aliases by what they refer to, as far as that is not too large: a few lines can refer to gigabytes.
type expansion struct{ values, text int }

func (e *expansion) of(node *yaml.Node, depth int) (*yaml.Node, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	e.values++
	e.text += len(node.Value)
	if e.values > mostValues || e.text > mostText || depth > mostDepth {
		return nil, fmt.Errorf("line %d: is too large or nested too deeply", node.Line)
	}
	if twice(node) {
		return nil, fmt.Errorf("line %d: a key is there twice", node.Line)
	}
	copied := &yaml.Node{Kind: node.Kind, Style: node.Style, Tag: node.Tag, Value: node.Value}
	if strings.Contains(node.Value, "\n") && node.ShortTag() != "!!binary" {
		copied.Style = yaml.DoubleQuotedStyle // a block would grow with its depth, and its first spaces be read as indentation
	}
	for _, child := range node.Content {
		expanded, err := e.of(child, depth+1)
		if err != nil {
			return nil, err
		}
		copied.Content = append(copied.Content, expanded)
	}
	return copied, nil
}

// twice reports whether a mapping has a key twice. Strict decoding would take a field that replaces a merged one for that.
func twice(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	keys := make(map[string]bool, len(node.Content)/2)
	for i := 0; i < len(node.Content); i += 2 {
		keys[node.Content[i].Value] = true
	}
	return len(keys) < len(node.Content)/2
}

// checkSize refuses what the YAML library would need minutes for.
func checkSize(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode && len(node.Content)/2 > mostKeys {
		return fmt.Errorf("line %d: has more than %d keys", node.Line, mostKeys)
	}
	for _, child := range node.Content {
		if err := checkSize(child); err != nil {
			return err
		}
	}
	return nil
}
