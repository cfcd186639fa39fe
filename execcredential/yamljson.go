package execcredential

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	mostKeys   = 1_000   // of one mapping: the YAML library compares each with each
	mostValues = 100_000 // of one extension or output, aliases followed
	mostDepth  = 200
)

// yamlToJSON writes a YAML value as the JSON that Kubernetes' own clients make of it: keys in order, and the booleans of YAML 1.1.
func yamlToJSON(node *yaml.Node) (json.RawMessage, error) {
	value, err := (&yamlValues{}).value(node, 0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

type yamlValues struct{ count int }

func (y *yamlValues) value(node *yaml.Node, depth int) (any, error) {
	if y.count++; y.count > mostValues || depth > mostDepth {
		return nil, fmt.Errorf("line %d: is too large or nested too deeply", node.Line)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return y.value(node.Alias, depth+1)
	case yaml.DocumentNode:
		return y.value(node.Content[0], depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, element := range node.Content {
			v, err := y.value(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return y.mapping(node, depth)
	case yaml.ScalarNode:
		return yamlScalar(node)
	default:
		return nil, nil
	}
}

func (y *yamlValues) mapping(node *yaml.Node, depth int) (any, error) {
	fields := make(map[string]any, len(node.Content)/2)
	merged := map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, element := node.Content[i], node.Content[i+1]
		v, err := y.value(element, depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			if err := merge(merged, v); err != nil {
				return nil, fmt.Errorf("line %d: %w", key.Line, err)
			}
			continue
		}
		name, err := yamlKey(key)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("line %d: a key is there twice", key.Line)
		}
		fields[name] = v
	}
	for name, v := range merged {
		if _, there := fields[name]; !there {
			fields[name] = v
		}
	}
	return fields, nil
}

// merge adds the fields that "<<" names. Of several mappings the first one that has a field counts.
func merge(into map[string]any, value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, element := range list {
		fields, ok := element.(map[string]any)
		if !ok {
			return errors.New("<< needs a mapping")
		}
		for name, v := range fields {
			if _, there := into[name]; !there {
				into[name] = v
			}
		}
	}
	return nil
}

// yamlScalar gives unquoted scalars the meaning that they have for Kubernetes: yes, no, on and off are booleans, dates are strings.
func yamlScalar(node *yaml.Node) (any, error) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tag := node.ShortTag()
	if tag == "!!timestamp" {
		return node.Value, nil
	}
	if tag == "!!str" && node.Style&(quoted|yaml.TaggedStyle) == 0 {
		switch node.Value {
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
			return true, nil
		case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
			return false, nil
		}
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("line %d: JSON can't write this number", node.Line)
		}
		return v, nil
	case string, bool, int, int64, uint64, nil:
		return v, nil
	default:
		return nil, fmt.Errorf("line %d: JSON can't write a %T", node.Line, value)
	}
}

func yamlKey(node *yaml.Node) (string, error) {
	for depth := 0; node.Kind == yaml.AliasNode && depth < mostDepth; depth++ {
		node = node.Alias
	}
	if node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a key must be a string", node.Line)
	}
	value, err := yamlScalar(node)
	if err != nil {
		return "", err
	}
	switch k := value.(type) {
	case string:
		return k, nil
	case nil:
		return "null", nil
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 64), nil
	default:
		return fmt.Sprint(k), nil
	}
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
