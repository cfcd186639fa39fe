// Package deploy holds what Credence installs in a cluster besides its processes: namespace, service accounts, roles and
// bindings. Out come the objects of base/*.yaml, in the order in which they can be applied; nothing here talks to a cluster.
package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed base/*.yaml
var base embed.FS

// Manifests returns the objects to apply, ordered. Each call returns new objects.
func Manifests() ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(base, "base/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		content, err := base.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("decode manifest %s: %w", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
