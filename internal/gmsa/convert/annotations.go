package convert

import (
	"encoding/json"
	"reflect"
)

// toAnnotations moves every field to its annotation.
func (p *pod) toAnnotations() {
	levels := p.levels()
	times := map[string]int{}
	for i, l := range levels {
		if i > 0 {
			times[l.container]++
		}
	}
	for i, l := range levels {
		before := p.moved
		options := child(child(l.holder, "securityContext"), "windowsOptions")
		for _, pair := range l.keys() {
			annotation, field := pair[0], pair[1]
			found, ok := find(options, field)
			path := l.fieldPath(field)
			if !ok || p.fixed(found, path) {
				continue
			}
			switch {
			case blank(resolve(found.value)): // as good as absent, in both forms
			case i > 0 && l.container == "":
				p.problem(found.key, path, "the container has no name, so no annotation can be for it", "give the container a name")
				continue
			case i > 0 && times[l.container] > 1:
				p.problem(found.key, path, "there are several containers of this name, so no annotation can be for one of them", "give each container its own name")
				continue
			default:
				annotations, ok := p.mapping(p.holder, p.path, "metadata", "annotations")
				if !ok || !p.put(annotations, annotation, field, found, path, p.annotationPath(annotation)) {
					continue
				}
			}
			found.remove()
			p.moved++
		}
		if p.moved > before {
			prune(l.holder, "securityContext", "windowsOptions")
		}
	}
}

// same reports whether two values of a field mean the same: the white space of contents does not count.
func same(field, a, b string) bool {
	if a == b || field == nameField {
		return a == b
	}
	var one, other any
	return json.Unmarshal([]byte(a), &one) == nil && json.Unmarshal([]byte(b), &other) == nil && reflect.DeepEqual(one, other)
}
