package credentialsbinding

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

var (
	typePath     = field.NewPath("provider", "type")
	secretPath   = field.NewPath("secretRef")
	identityPath = field.NewPath("workloadIdentityRef")
	quotasPath   = field.NewPath("quotas")
)

func validate(binding *v1alpha1.CredentialsBinding) field.ErrorList {
	errs := validation.ValidateObjectMeta(&binding.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateReferences(binding)...)
}

func validateUpdate(binding, old *v1alpha1.CredentialsBinding) field.ErrorList {
	// The machinery has compared the metadata by now.
	errs := validation.ValidateImmutableField(binding.Provider.Type, old.Provider.Type, typePath)
	if !equality.Semantic.DeepEqual(binding.Quotas, old.Quotas) {
		errs = append(errs, validation.ValidateImmutableField(binding.Quotas, old.Quotas, quotasPath)...)
	}
	return append(errs, validateReferences(binding)...)
}

func validateReferences(binding *v1alpha1.CredentialsBinding) field.ErrorList {
	var errs field.ErrorList
	if binding.Provider.Type == "" {
		errs = append(errs, field.Required(typePath, "name the kind of provider that the credentials are for, such as aws"))
	} else {
		errs = append(errs, matches(typePath, binding.Provider.Type, utilvalidation.IsDNS1123Label)...)
	}
	switch {
	case binding.SecretRef == nil && binding.WorkloadIdentityRef == nil:
		errs = append(errs, field.Required(identityPath, "set workloadIdentityRef, or secretRef"))
	case binding.SecretRef != nil && binding.WorkloadIdentityRef != nil:
		errs = append(errs, field.Forbidden(identityPath, "must not be set beside secretRef: a binding has exactly one of the two"))
	}
	errs = append(errs, validateReference(secretPath, binding.SecretRef)...)
	errs = append(errs, validateReference(identityPath, binding.WorkloadIdentityRef)...)
	return append(errs, validateQuotas(binding.Quotas)...)
}

func validateReference(path *field.Path, reference *v1alpha1.CredentialsReference) field.ErrorList {
	if reference == nil {
		return nil
	}
	namespace := matches(path.Child("namespace"), reference.Namespace, utilvalidation.IsDNS1123Label)
	if reference.Name == "" {
		return append(namespace, field.Required(path.Child("name"), ""))
	}
	return append(namespace, matches(path.Child("name"), reference.Name, utilvalidation.IsDNS1123Subdomain)...)
}

func matches(path *field.Path, value string, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range check(value) {
		errs = append(errs, field.Invalid(path, wording.Abbreviate(value), message))
	}
	return errs
}
