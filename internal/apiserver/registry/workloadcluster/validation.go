package workloadcluster

import (
	"fmt"
	"strings"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxUsers      = 10
	maxUser       = 512
	maxNamespaces = 1000
)

func validate(cluster *v1alpha1.WorkloadCluster) field.ErrorList {
	errs := validation.ValidateObjectMeta(&cluster.ObjectMeta, false, validation.NameIsDNSLabel, field.NewPath("metadata"))
	users, namespaces := field.NewPath("spec", "users"), field.NewPath("spec", "identities", "namespaces")
	errs = append(errs, validateSet(cluster.Spec.Users, maxUsers, users, func(user string) []string {
		if user == "" || len(user) > maxUser || !identity.Printable(user) {
			return []string{fmt.Sprintf("must be the name of a user: 1 to %d characters of printable ASCII, without spaces", maxUser)}
		}
		if user == "system:anonymous" {
			return []string{"must be the name of a user who is authenticated"}
		}
		if strings.HasPrefix(user, "system:serviceaccount:"+rights.SystemNamespace+":") {
			return []string{"must not be a part of Credence: it would get tokens of this cluster alone"}
		}
		return nil
	})...)
	return append(errs, validateSet(cluster.Spec.Identities.Namespaces, maxNamespaces, namespaces, func(namespace string) []string {
		return validation.ValidateNamespaceName(namespace, false)
	})...)
}

// validateSet reports too many values, duplicates, and invalid values.
func validateSet(values []string, most int, path *field.Path, faults func(string) []string) field.ErrorList {
	if len(values) > most {
		return field.ErrorList{field.TooMany(path, len(values), most)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, value := range values {
		if seen.Has(value) {
			errs = append(errs, field.Duplicate(path.Index(i), wording.Abbreviate(value)))
		}
		seen.Insert(value)
		for _, fault := range faults(value) {
			errs = append(errs, field.Invalid(path.Index(i), wording.Abbreviate(value), fault))
		}
	}
	return errs
}
