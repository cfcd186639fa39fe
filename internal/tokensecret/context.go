package tokensecret

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// maxContextBytes bounds the annotation: its longest fields are names of 253 characters.
const maxContextBytes = 2048

// ParseContext reads the annotation that holds a context object: one JSON object with the fields apiVersion, kind, name,
// namespace and uid, each at most once, in any order, and no others.
func ParseContext(text string) (*v1alpha1.ContextObject, error) {
	if len(text) > maxContextBytes {
		return nil, fmt.Errorf("is %d bytes long, at most %d are allowed", len(text), maxContextBytes)
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, errors.New(`is not a JSON object such as {"apiVersion":"v1","kind":"ServiceAccount","name":"…","namespace":"…","uid":"…"}`)
	}
	var object v1alpha1.ContextObject
	strict, err := kjson.UnmarshalStrict([]byte(text), &object)
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if err := errors.Join(strict...); err != nil {
		return nil, err
	}
	for _, field := range []struct{ name, value string }{{"apiVersion", object.APIVersion}, {"kind", object.Kind}, {"name", object.Name}, {"uid", string(object.UID)}} {
		if field.value == "" {
			return nil, fmt.Errorf("has no %s", field.name)
		}
	}
	if _, err := schema.ParseGroupVersion(object.APIVersion); err != nil {
		return nil, fmt.Errorf("apiVersion: %w", err)
	}
	return &object, nil
}

// FormatContext writes the annotation that holds a context object.
func FormatContext(object v1alpha1.ContextObject) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(text)
}

// ServiceAccountContext reports whether the context is a service account of Kubernetes.
func ServiceAccountContext(object *v1alpha1.ContextObject) bool {
	return object != nil && object.APIVersion == "v1" && object.Kind == "ServiceAccount"
}
