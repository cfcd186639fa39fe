package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/credence-id/credence/internal/strictjson"
)

var errNoJSON = errors.New("the document has what JSON has not")

// asJSON writes a document that was JSON.
func asJSON(text string, root *yaml.Node) (string, error) {
	var compact, indented bytes.Buffer
	if err := appendJSON(&compact, root.Content[0]); err != nil {
		return "", err
	}
	if !strings.Contains(strings.TrimSpace(text), "\n") {
		return compact.String() + trailing(text), nil
	}
	indent := "  "
	if found := regexp.MustCompile(`\n([ \t]+)\S`).FindStringSubmatch(text); found != nil {
		indent = found[1]
	}
	if err := json.Indent(&indented, compact.Bytes(), "", indent); err != nil {
		return "", err
	}
	return indented.String() + trailing(text), nil
}

func trailing(text string) string { return text[len(strings.TrimRight(text, " \t\r\n")):] }

func appendJSON(to *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		to.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := appendText(to, n.Content[i].Value); err != nil {
				return err
			}
			to.WriteByte(':')
			if err := appendJSON(to, n.Content[i+1]); err != nil {
				return err
			}
		}
		to.WriteByte('}')
	case yaml.SequenceNode:
		to.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := appendJSON(to, item); err != nil {
				return err
			}
		}
		to.WriteByte(']')
	case yaml.ScalarNode:
		if n.Style&yaml.DoubleQuotedStyle != 0 || n.ShortTag() == "!!str" {
			return appendText(to, n.Value)
		}
		to.WriteString(n.Value)
	default:
		return errNoJSON
	}
	return nil
}

func appendText(to *bytes.Buffer, text string) error {
	encoded, err := strictjson.Encode(text)
	to.Write(encoded)
	return err
}

// asYAML writes a document with the indentation that it had.
func asYAML(root *yaml.Node) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	indent, compact := style(root.Content[0])
	encoder.SetIndent(indent)
	if compact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(root); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// style finds how a document is indented: by how much, and whether the dashes of lists stand below the key of the list.
func style(root *yaml.Node) (indent int, compact bool) {
	indent, compact = 0, true
	dashes := false
	var search func(n *yaml.Node)
	search = func(n *yaml.Node) {
		for i, value := range n.Content {
			if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && i%2 == 1 && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0 {
				key := n.Content[i-1]
				switch {
				case value.Kind == yaml.MappingNode && indent == 0 && value.Column > key.Column && value.Line > key.Line:
					indent = value.Column - key.Column
				case value.Kind == yaml.SequenceNode && !dashes:
					dashes, compact = true, value.Column == key.Column
				}
			}
			search(value)
		}
	}
	search(root)
	if indent < 2 || indent > 8 {
		indent = 2
	}
	return indent, compact
}
