package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// entry is a key and its value, in the mapping that has them, which may be one that another merges.
type entry struct{ key, value, in *yaml.Node }

// find is the entry of a key, of the mapping itself or of one that it merges; ok is false without one.
func find(n *yaml.Node, key string) (found entry, ok bool) {
	return findIn(n, key, map[*yaml.Node]bool{})
}

func findIn(n *yaml.Node, key string, seen map[*yaml.Node]bool) (found entry, ok bool) {
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode || seen[n] {
		return entry{}, false
	}
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i].ShortTag() != "!!merge" {
			found, ok = entry{n.Content[i], n.Content[i+1], n}, true
		}
	}
	for _, source := range merged(n) {
		if ok {
			break
		}
		found, ok = findIn(source, key, seen)
	}
	return found, ok
}

// merged are the mappings that one merges.
func merged(n *yaml.Node) []*yaml.Node {
	var sources []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		if source := resolve(n.Content[i+1]); source.Kind == yaml.SequenceNode {
			sources = append(sources, source.Content...)
		} else {
			sources = append(sources, source)
		}
	}
	return sources
}

// keys are those of a mapping and of those that it merges, each once.
func keys(n *yaml.Node) []string {
	var names []string
	seen, visited := map[string]bool{}, map[*yaml.Node]bool{}
	var collect func(n *yaml.Node)
	collect = func(n *yaml.Node) {
		if n = resolve(n); n == nil || n.Kind != yaml.MappingNode || visited[n] {
			return
		}
		visited[n] = true
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.ShortTag() != "!!merge" && !seen[key.Value] {
				seen[key.Value] = true
				names = append(names, key.Value)
			}
		}
		for _, source := range merged(n) {
			collect(source)
		}
	}
	collect(n)
	return names
}

// sharedNodes are those that a document has in several places.
func sharedNodes(document *yaml.Node) map[*yaml.Node]bool {
	shared, seen := map[*yaml.Node]bool{}, map[*yaml.Node]bool{}
	var mark, search func(n *yaml.Node)
	mark = func(n *yaml.Node) {
		if n == nil || shared[n] {
			return
		}
		shared[n] = true
		mark(n.Alias)
		for _, content := range n.Content {
			mark(content)
		}
	}
	search = func(n *yaml.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		mark(n.Alias)
		for _, content := range n.Content {
			search(content)
		}
	}
	search(document)
	return shared
}

func child(n *yaml.Node, key string) *yaml.Node {
	found, _ := find(n, key)
	return found.value
}

func text(n *yaml.Node, key string) string {
	if value := resolve(child(n, key)); value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null" {
		return value.Value
	}
	return ""
}

// isNull reports whether a node is null, which is how keys without a value are read.
func isNull(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// remove takes an entry out of its mapping, and leaves the comments at it to what is beside it.
func (e entry) remove() {
	for i := 0; i+1 < len(e.in.Content); i += 2 {
		if e.in.Content[i] != e.key {
			continue
		}
		e.in.Content = append(e.in.Content[:i:i], e.in.Content[i+2:]...)
		comments := joined(e.key.HeadComment, e.key.LineComment, e.value.HeadComment, e.value.LineComment, e.value.FootComment, e.key.FootComment)
		switch {
		case i < len(e.in.Content):
			e.in.Content[i].HeadComment = joined(comments, e.in.Content[i].HeadComment)
		case i > 0:
			e.in.Content[i-2].FootComment = joined(e.in.Content[i-2].FootComment, comments)
		default:
			e.in.HeadComment = joined(e.in.HeadComment, comments)
		}
		return
	}
}

func joined(comments ...string) string {
	return strings.Join(slices.DeleteFunc(comments, func(c string) bool { return c == "" }), "\n")
}

// asText makes a scalar text, whatever YAML would read in it.
func asText(n *yaml.Node) {
	if n.ShortTag() != "!!str" {
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	}
}
