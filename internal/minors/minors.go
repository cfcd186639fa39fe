package minors

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

//go:embed minors.yaml
var content []byte

// Known is what Credence has on the minors of Kubernetes 1.
type Known struct {
	Oldest, Newest int
	Features       []Feature
	Fields         []Field
}

// Feature is what some minors have less of.
type Feature struct {
	Name string
	Less []Less // ascending
}

// Less is how a feature differs on minors up to one.
type Less struct {
	Until      int
	How, Means string
}

// Field is one of a manifest that minors before Since do not know.
type Field struct {
	Kind  string
	Path  []string
	Since int
}

// All returns what is known of the minors of Kubernetes.
func All() Known {
	var known Known
	if err := yaml.UnmarshalStrict(content, &known); err != nil {
		panic(fmt.Sprintf("minors.yaml: %v", err)) // it is embedded, and a test reads it
	}
	return known
}

// On returns how the feature differs on a minor; nil: not at all.
func (f Feature) On(minor int) *Less {
	if i := slices.IndexFunc(f.Less, func(l Less) bool { return minor <= l.Until }); i >= 0 {
		return &f.Less[i]
	}
	return nil
}

// Trim removes the fields of objects that a minor does not know.
func (m Known) Trim(objects []*unstructured.Unstructured, minor int) {
	for _, object := range objects {
		for _, field := range m.Fields {
			if object.GetKind() == field.Kind && minor < field.Since {
				unstructured.RemoveNestedField(object.Object, field.Path...)
			}
		}
	}
}

// Of reads the minor in what a cluster answers at /version: clouds put a sign behind it, as in 33+.
func Of(answer []byte) (int, error) {
	var info version.Info
	if err := json.Unmarshal(answer, &info); err != nil {
		return 0, fmt.Errorf("read the version of the cluster: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	if err != nil || info.Major != "1" {
		return 0, fmt.Errorf("the version of the cluster is %q.%q: want 1 and a number", info.Major, info.Minor)
	}
	return minor, nil
}

// Check returns why Credence does not run on a minor of Kubernetes, or nothing.
func (m Known) Check(minor int) error {
	if minor < m.Oldest {
		return fmt.Errorf("the cluster is Kubernetes 1.%d, and Credence needs 1.%d or newer", minor, m.Oldest)
	}
	return nil
}
