package objects

import (
	"encoding/json"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/app/cli/screen"
)

// Print prints objects as kubectl apply takes them: YAML documents, or a List in JSON.
func Print(w io.Writer, output string, objects []any) error {
	for i, object := range objects {
		manifest, err := manifestOf(object)
		if err != nil {
			return err
		}
		objects[i] = manifest
	}
	if output == "json" {
		return screen.JSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for i, object := range objects {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if err := screen.Object(w, "yaml", object); err != nil {
			return err
		}
	}
	return nil
}

// manifestOf is an object without what the API server alone writes.
func manifestOf(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("print the result: %w", err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("print the result: %w", err)
	}
	if metadata, ok := manifest["metadata"].(map[string]any); ok {
		for _, key := range []string{"creationTimestamp", "resourceVersion", "uid", "managedFields", "generation"} {
			delete(metadata, key)
		}
	}
	delete(manifest, "status")
	return manifest, nil
}

// SubjectText words a subject of RBAC.
func SubjectText(s rbacv1.Subject) string {
	switch s.Kind {
	case rbacv1.GroupKind:
		return "group " + s.Name
	case rbacv1.ServiceAccountKind:
		return "service account " + s.Namespace + "/" + s.Name
	default:
		return "user " + s.Name
	}
}
