package gmsa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/app/cli/command"
)

// place is where something stands in a file, counted from 1.
type place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// placed is JSON that was made of YAML, with the place of each of its keys and values. Keys that repeat are kept.
type placed struct {
	json    []byte
	offsets []int
	places  []place
}

// maxNesting bounds how deep a file may be nested.
const maxNesting = 100

func placedJSON(n *yaml.Node) (*placed, error) {
	p := placer{scalars: map[*yaml.Node][]byte{}}
	if err := p.write(n, 0); err != nil {
		return nil, err
	}
	return &placed{json: p.out.Bytes(), offsets: p.offsets, places: p.places}, nil
}

// at is the place of what begins at an offset of the JSON.
func (p *placed) at(offset int) place {
	i := sort.SearchInts(p.offsets, offset+1) - 1
	if i < 0 {
		return place{1, 1}
	}
	return p.places[i]
}

type placer struct {
	out     bytes.Buffer
	offsets []int
	places  []place
	scalars map[*yaml.Node][]byte // their JSON: aliases may stand for one a million times
}

func (p *placer) mark(n *yaml.Node) {
	p.offsets = append(p.offsets, p.out.Len())
	p.places = append(p.places, place{n.Line, n.Column})
}

func (p *placer) write(n *yaml.Node, depth int) error {
	if depth > maxNesting || p.out.Len() > command.MaxFile {
		return fmt.Errorf("line %d: values are nested too deep, or stand for too many", n.Line)
	}
	p.mark(n)
	switch n.Kind {
	case yaml.AliasNode:
		return p.write(n.Alias, depth+1)
	case yaml.ScalarNode:
		if p.scalars[n] == nil {
			p.scalars[n] = scalarJSON(n)
		}
		p.out.Write(p.scalars[n])
		return nil
	case yaml.SequenceNode:
		p.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				p.out.WriteByte(',')
			}
			if err := p.write(item, depth+1); err != nil {
				return err
			}
		}
		p.out.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return p.mapping(n, depth)
	}
	return errors.New("it holds something that JSON cannot")
}

func (p *placer) mapping(n *yaml.Node, depth int) error {
	pairs, err := pairsOf(n, map[*yaml.Node]bool{})
	if err != nil {
		return err
	}
	p.out.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.mark(pairs[i])
		p.out.Write(jsonText(pairs[i].Value))
		p.out.WriteByte(':')
		if err := p.write(pairs[i+1], depth+1); err != nil {
			return err
		}
	}
	p.out.WriteByte('}')
	return nil
}

// pairsOf are the keys and values of a mapping, in turn, with those that it merges from others and has not itself.
// Nodes in seen have been merged already.
func pairsOf(n *yaml.Node, seen map[*yaml.Node]bool) ([]*yaml.Node, error) {
	if seen[n] {
		return nil, nil
	}
	seen[n] = true
	var pairs []*yaml.Node
	var merged []*yaml.Node
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: a key is not text", key.Line)
		case key.ShortTag() == "!!merge":
			merged = append(merged, unaliased(value))
		default:
			own[key.Value] = true
			pairs = append(pairs, key, value)
		}
	}
	for _, source := range merged {
		sources := []*yaml.Node{source}
		if source.Kind == yaml.SequenceNode {
			sources = source.Content
		}
		for _, source := range sources {
			if source = unaliased(source); source.Kind != yaml.MappingNode {
				return nil, fmt.Errorf("line %d: << merges a value that is not an object", source.Line)
			}
			more, err := pairsOf(source, seen)
			if err != nil {
				return nil, err
			}
			for i := 0; i < len(more); i += 2 {
				if !own[more[i].Value] {
					own[more[i].Value] = true
					pairs = append(pairs, more[i], more[i+1])
				}
			}
		}
	}
	return pairs, nil
}

// scalarJSON is a scalar as kubectl reads it, for which yes and off are not text.
func scalarJSON(n *yaml.Node) []byte {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0 {
		value, err := sigsyaml.YAMLToJSON([]byte(n.Value))
		if value = bytes.TrimSpace(value); err == nil && json.Valid(value) && value[0] != '{' && value[0] != '[' {
			return value
		}
	}
	return jsonText(n.Value)
}

func jsonText(text string) []byte {
	encoded, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`) // a string always has a JSON form
	}
	return encoded
}
