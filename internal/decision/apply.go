package decision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Applied returns an object after a patch that adds and removes, as the API server would apply it (RFC 6902, sections 4.1 and 4.2).
func Applied[T any](object *T, patch []Operation) (*T, error) {
	var document any
	if err := through(object, &document); err != nil {
		return nil, err
	}
	for _, operation := range patch {
		var value any
		if err := through(operation.Value, &value); err != nil {
			return nil, err
		}
		segments := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
		changed, err := edit(document, segments, value, operation.Op == "remove")
		if err != nil {
			return nil, fmt.Errorf("apply the patch at %s: %w", operation.Path, err)
		}
		document = changed
	}
	changed := new(T)
	return changed, through(document, changed)
}

// through turns a value into another one that has the same JSON.
func through(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// edit puts a value at a JSON pointer's segments (RFC 6901, section 4), or removes the one that is there.
func edit(at any, segments []string, value any, remove bool) (any, error) {
	segment := strings.NewReplacer("~1", "/", "~0", "~").Replace(segments[0])
	last := len(segments) == 1
	switch node := at.(type) {
	case map[string]any:
		if last && remove {
			delete(node, segment)
			return node, nil
		}
		if last {
			node[segment] = value
			return node, nil
		}
		child, err := edit(node[segment], segments[1:], value, remove)
		node[segment] = child
		return node, err
	case []any:
		if last && segment == "-" {
			return append(node, value), nil
		}
		i, err := strconv.Atoi(segment)
		if err != nil || last && !remove || i < 0 || i >= len(node) {
			return node, fmt.Errorf("there is no element %s of a list of %d", segment, len(node))
		}
		if last {
			return slices.Delete(node, i, i+1), nil
		}
		child, err := edit(node[i], segments[1:], value, remove)
		node[i] = child
		return node, err
	default:
		return at, fmt.Errorf("there is nothing that has %s", segment)
	}
}
