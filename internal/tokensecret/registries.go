package tokensecret

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// CheckRegistries returns an *AnnotationError if the registries whose passwords a Secret is to have are no list of names.
func CheckRegistries(object metav1.Object) error {
	list := strings.Split(object.GetAnnotations()[v1alpha1.AnnotationRegistries], ",")
	if !slices.ContainsFunc(list, func(images string) bool { return strings.TrimSpace(images) == "" }) {
		return nil
	}
	return &AnnotationError{v1alpha1.AnnotationRegistries, errors.New("names no registry, or has an empty name: list the registries whose passwords the Secret is to have, " +
		"by images of the configuration of credence-registry, such as registry.example.com/team, separated by commas")}
}
