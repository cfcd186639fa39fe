package workloadidentity

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxAudiences      = 20
	maxAudienceLength = 600
)

var (
	specPath   = field.NewPath("spec")
	targetPath = specPath.Child("targetSystem")
)

func validate(wi *v1alpha1.WorkloadIdentity) field.ErrorList {
	errs := validation.ValidateObjectMeta(&wi.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if wi.UID != "" && wi.Name != "" {
		if _, err := identity.NewSubject(wi.Namespace, wi.Name, string(wi.UID)); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), wi.Name, err.Error()))
		}
	}
	return append(errs, validateSpec(wi.Spec)...)
}

func validateSpec(spec v1alpha1.WorkloadIdentitySpec) field.ErrorList {
	errs := validateAudiences(spec.Audiences, specPath.Child("audiences"))
	return append(errs, validateTarget(spec.TargetSystem, targetPath)...)
}

func validateUpdate(wi, old *v1alpha1.WorkloadIdentity) field.ErrorList {
	// The machinery has compared the metadata by now.
	errs := validation.ValidateImmutableField(wi.Spec.TargetSystem.Type, old.Spec.TargetSystem.Type, targetPath.Child("type"))
	return append(errs, validateSpec(wi.Spec)...)
}

func validateAudiences(audiences []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(audiences) == 0 {
		errs = append(errs, field.Required(path, "name at least one audience that the tokens are meant for"))
	}
	if len(audiences) > maxAudiences {
		// The rest is not looked at: a body can hold a million of them.
		return append(errs, field.TooMany(path, len(audiences), maxAudiences))
	}
	seen := sets.New[string]()
	for i, audience := range audiences {
		switch n := utf8.RuneCountInString(audience); {
		case audience == "":
			errs = append(errs, field.Required(path.Index(i), "an audience must not be empty"))
			continue
		case n > maxAudienceLength:
			errs = append(errs, field.Invalid(path.Index(i), abbreviate(audience), fmt.Sprintf("is %d characters long, at most %d are allowed", n, maxAudienceLength)))
		case hasControl(audience):
			errs = append(errs, field.Invalid(path.Index(i), audience, "must not contain control characters or invalid UTF-8"))
		case seen.Has(audience):
			errs = append(errs, field.Duplicate(path.Index(i), audience))
		}
		seen.Insert(audience)
	}
	return errs
}

func hasControl(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return true
		}
	}
	return false
}

func abbreviate(s string) string {
	const shown = 32
	if runes := []rune(s); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return s
}

func validateTarget(target v1alpha1.TargetSystem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if target.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "name the kind of target system, such as aws, azure, gcp, alicloud, kubernetes or generic"))
	} else {
		for _, message := range utilvalidation.IsDNS1123Label(target.Type) {
			errs = append(errs, field.Invalid(path.Child("type"), abbreviate(target.Type), message))
		}
	}
	if target.ProviderConfig != nil {
		errs = append(errs, validateProviderConfig(target.ProviderConfig.Raw, path.Child("providerConfig"))...)
	}
	return errs
}
