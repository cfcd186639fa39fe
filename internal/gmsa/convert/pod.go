package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/credence-id/credence/internal/gmsa"
)

const (
	nameField     = "gmsaCredentialSpecName"
	contentsField = "gmsaCredentialSpec"
)

// level is a place of a pod that may have an account: the pod as a whole, or a container.
type level struct {
	// container is its name; "" is the pod.
	container string
	// holder is the mapping that has the securityContext, and path where it is, with a dot at its end.
	holder *yaml.Node
	path   string
}

// keys are the annotations of a level, each with its field.
func (l level) keys() [][2]string {
	name, contents := gmsa.AnnotationKeys(l.container)
	return [][2]string{{name, nameField}, {contents, contentsField}}
}

func (l level) fieldPath(field string) string {
	return l.path + "securityContext.windowsOptions." + field
}

// pod is a pod or a pod template on its way.
type pod struct {
	*conversion
	holder *yaml.Node // has metadata and spec
	path   string
}

// levels are the pod, which comes first, and its containers; none if there is no spec.
func (p *pod) levels() []level {
	spec := child(p.holder, "spec")
	if at := resolve(spec); at == nil || at.Kind != yaml.MappingNode {
		return nil
	}
	levels := []level{{"", spec, p.path + "spec."}}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers := resolve(child(spec, list))
		if containers == nil || containers.Kind != yaml.SequenceNode {
			continue
		}
		for i, container := range containers.Content {
			levels = append(levels, level{text(container, "name"), container, fmt.Sprintf("%sspec.%s[%d].", p.path, list, i)})
		}
	}
	return levels
}

func (p *pod) annotationPath(key string) string { return p.path + "metadata.annotations[" + key + "]" }

const anchorFix = "write it out where it is used, without anchors and merges"

// fixed reports, with a problem, whether an entry cannot be moved.
func (p *pod) fixed(e entry, path string) bool {
	switch {
	case p.shared[e.in] || p.shared[e.value] && e.value.Kind != yaml.AliasNode:
		p.problem(e.key, path, "the value is shared with other places of the document", anchorFix)
	case resolve(e.value).Kind != yaml.ScalarNode:
		p.problem(e.value, path, "the value is not text", "give the name, or the credential spec as JSON text")
	default:
		return false
	}
	return true
}

func blank(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && (n.Value == "" || isNull(n)) }

// toFields moves every annotation to its field.
func (p *pod) toFields() {
	annotations := child(child(p.holder, "metadata"), "annotations")
	byName := map[string][]level{}
	for i, l := range p.levels() {
		if i == 0 || l.container != "" {
			byName[l.container] = append(byName[l.container], l)
		}
	}
	before := p.moved
	for _, key := range keys(annotations) {
		container, ours := gmsa.AnnotationOf(key)
		if !ours {
			continue
		}
		annotation, _ := find(annotations, key)
		path, levels := p.annotationPath(key), byName[container]
		if p.fixed(annotation, path) {
			continue
		}
		switch {
		case blank(resolve(annotation.value)): // as good as absent, in both forms
		case len(levels) == 0:
			p.problem(annotation.key, path, fmt.Sprintf("the annotation is for %s, which the object does not have", whose(container)), "correct the name of the container in the annotation, or remove it")
			continue
		case len(levels) > 1:
			p.problem(annotation.key, path, fmt.Sprintf("the annotation is for %s, of which there are %d", whose(container), len(levels)), "give each container its own name")
			continue
		default:
			field := nameField
			if strings.HasSuffix(key, "-spec") {
				field = contentsField
			}
			options, ok := p.mapping(levels[0].holder, levels[0].path, "securityContext", "windowsOptions")
			if !ok || !p.put(options, field, field, annotation, path, levels[0].fieldPath(field)) {
				continue
			}
		}
		annotation.remove()
		p.moved++
	}
	if p.moved > before {
		prune(p.holder, "metadata", "annotations")
	}
}

func whose(container string) string {
	if container == "" {
		return "the spec of the pod"
	}
	return fmt.Sprintf("container %q", container)
}

// put writes a value under a key of a mapping, unless there is another.
func (p *pod) put(to *yaml.Node, key, field string, from entry, fromPath, toPath string) bool {
	if there, ok := find(to, key); ok {
		if !blank(resolve(there.value)) {
			if value := resolve(there.value); value.Kind == yaml.ScalarNode && same(field, value.Value, resolve(from.value).Value) {
				return true
			}
			p.problem(from.key, fromPath, fmt.Sprintf("%s has another value, in line %d", toPath, p.base+there.key.Line), "remove the one of the two that is wrong")
			return false
		}
		if p.fixed(there, toPath) {
			return false
		}
		there.remove()
	}
	if from.key.HeadComment+from.key.LineComment+from.value.LineComment != "" {
		to.Style &^= yaml.FlowStyle // comments need lines
	}
	value := *resolve(from.value)
	value.Anchor = ""
	value.HeadComment, value.LineComment, value.FootComment = from.value.HeadComment, from.value.LineComment, from.value.FootComment
	asText(&value)
	to.Content = append(to.Content, &yaml.Node{
		Kind: yaml.ScalarNode, Tag: "!!str", Value: key,
		HeadComment: from.key.HeadComment, LineComment: from.key.LineComment,
	}, &value)
	// The comments have moved. A comment below stays when the entry is removed: it is likelier about the next entry.
	from.key.HeadComment, from.key.LineComment = "", ""
	from.value.HeadComment, from.value.LineComment, from.value.FootComment = "", "", ""
	return true
}

// mapping is the mapping at keys below another, created where it is missing.
func (p *pod) mapping(n *yaml.Node, path string, keys ...string) (*yaml.Node, bool) {
	for _, key := range keys {
		found, ok := find(n, key)
		n, path = resolve(n), path+key
		switch {
		case !ok && p.shared[n], ok && (p.shared[found.in] || p.shared[resolve(found.value)]):
			at := n
			if ok {
				at = found.key
			}
			p.problem(at, path, "the object is shared with other places of the document", anchorFix)
			return nil, false
		case !ok:
			made := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			at := len(n.Content)
			for i := 0; key == "metadata" && i < len(n.Content); i += 2 {
				if n.Content[i].Value == "spec" { // which people expect after it
					at = i
				}
			}
			n.Content = slices.Insert(n.Content, at, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, made)
			n = made
		case isNull(found.value):
			found.value.Kind, found.value.Tag, found.value.Value, found.value.Style = yaml.MappingNode, "!!map", "", 0
			n = found.value
		case found.value.Kind != yaml.MappingNode:
			p.problem(found.value, path, "the value is not an object", "correct it: the API server refuses it, too")
			return nil, false
		default:
			if n = found.value; len(n.Content) == 0 {
				n.Style &^= yaml.FlowStyle // {} is how an empty one must be written
			}
		}
		path += "."
	}
	return n, true
}

// prune removes the mappings at keys below another, the last one first, as far as they are empty.
func prune(n *yaml.Node, keys ...string) {
	if len(keys) == 0 {
		return
	}
	found, ok := find(n, keys[0])
	if !ok || found.value.Kind != yaml.MappingNode {
		return
	}
	prune(found.value, keys[1:]...)
	if len(found.value.Content) == 0 {
		found.remove()
	}
}
