package renewal

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// PasswordInputs is what the passwords of registries in a Secret are made from. Seal, of it and of them, is what stands beside them.
func PasswordInputs(secret *corev1.Secret) string {
	return Text(secret.Annotations[v1alpha1.AnnotationRegistries], secret.Labels[v1alpha1.LabelProvider],
		string(secret.Data[v1alpha1.SecretConfig]), string(secret.Data[v1alpha1.SecretToken]))
}

// Text joins texts, so that other texts never give the same.
func Text(parts ...string) string {
	joined, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(joined)
}
