package secrets

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/target"
)

// difference is the patch after which a Secret holds the wanted keys, and no earlier ones that are not wanted any more. While the config is
// missing none are wanted.
// Values are bytes, which have base64 as their JSON form, as the data of a Secret has.
func difference(secret *corev1.Secret, wanted rendered, before []target.Key) []Operation {
	var operations []Operation
	if wanted.waiting {
		// Those of a config that was taken out. A key with another content is not one of them.
		for _, key := range before {
			if content, present := secret.Data[key.Name]; present && string(content) == key.Content {
				operations = append(operations, Operation{Op: "remove", Path: path(key.Name)})
			}
		}
		return operations
	}
	missing := map[string][]byte{}
	for _, key := range wanted.keys {
		content, present := secret.Data[key.Name]
		switch {
		case secret.Data == nil:
			missing[key.Name] = []byte(key.Content)
		case !present || string(content) != key.Content:
			operations = append(operations, Operation{Op: "add", Path: path(key.Name), Value: []byte(key.Content)})
		}
	}
	if len(missing) > 0 {
		operations = append(operations, Operation{Op: "add", Path: "/data", Value: missing})
	}
	for _, key := range before {
		_, present := secret.Data[key.Name]
		given := slices.ContainsFunc(wanted.keys, func(k target.Key) bool { return k.Name == key.Name })
		if present && !given && key.Name != v1alpha1.SecretToken && key.Name != v1alpha1.SecretConfig {
			operations = append(operations, Operation{Op: "remove", Path: path(key.Name)})
		}
	}
	return operations
}

// emptyLogins is the patch after which a Secret that is to have passwords of registries has a place for them: the API takes none of its type
// without. So a manifest can leave the key out, and is applied again without taking them away. made reports whether the Secret has data after the
// patches before.
func emptyLogins(secret *corev1.Secret, made bool) []Operation {
	_, present := secret.Data[corev1.DockerConfigJsonKey]
	if present || secret.Type != corev1.SecretTypeDockerConfigJson || secret.Annotations[v1alpha1.AnnotationRegistries] == "" {
		return nil
	}
	empty := []byte("{}")
	if secret.Data == nil && !made {
		return []Operation{{Op: "add", Path: "/data", Value: map[string][]byte{corev1.DockerConfigJsonKey: empty}}}
	}
	return []Operation{{Op: "add", Path: path(corev1.DockerConfigJsonKey), Value: empty}}
}

// path escapes a key for a JSON pointer (RFC 6901, section 3).
func path(key string) string {
	return "/data/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
