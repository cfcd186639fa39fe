package credentialsdata

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// consents reports whether the data of a Secret may be copied for bindings of a namespace.
func consents(secret *corev1.Secret, namespace string) bool {
	return secret.Labels[v1alpha1.LabelCopied] == v1alpha1.CopiedEnabled &&
		slices.ContainsFunc(strings.Split(secret.Annotations[v1alpha1.AnnotationCopiedFor], ","), func(listed string) bool { return strings.TrimSpace(listed) == namespace })
}
