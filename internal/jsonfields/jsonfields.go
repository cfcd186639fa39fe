// Package jsonfields finds the fields of a JSON text that a Go type does not have. In goes the text, out come their paths. It decides nothing.
package jsonfields

import (
	"slices"
	"strings"

	"sigs.k8s.io/json"
)

// Unknown decodes an object, and returns the paths of its fields that into does not have, such as spec.note, but for those that begin with one of the
// ignored texts.
func Unknown(data []byte, into any, ignored ...string) ([]string, error) {
	unknown, err := json.UnmarshalStrict(data, into, json.DisallowUnknownFields)
	var fields []string
	for _, each := range unknown {
		field := strings.Trim(strings.TrimPrefix(each.Error(), "unknown field "), `"`)
		if !slices.ContainsFunc(ignored, func(start string) bool { return strings.HasPrefix(field, start) }) {
			fields = append(fields, field)
		}
	}
	return fields, err
}
