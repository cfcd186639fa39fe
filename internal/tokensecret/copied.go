package tokensecret

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Copied is which keys of a Secret were copied from the Secret of a CredentialsBinding.
type Copied struct {
	Binding types.NamespacedName
	Keys    []string
}

// String is the value of the annotation for it, which a policy reads, too: NAMESPACE/NAME:KEY,KEY.
func (c Copied) String() string { return c.Binding.String() + ":" + strings.Join(c.Keys, ",") }

// CopiedInto reads the annotation of a Secret; present is false without one.
func CopiedInto(secret metav1.Object) (copied Copied, present bool) {
	text, present := secret.GetAnnotations()[v1alpha1.AnnotationCopiedKeys]
	binding, keys, _ := strings.Cut(text, ":")
	copied.Binding.Namespace, copied.Binding.Name, _ = strings.Cut(binding, "/")
	if keys != "" {
		copied.Keys = strings.Split(keys, ",")
	}
	return copied, present
}
