package workloadidentity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxAudiences      = 20
	maxAudienceLength = 600
	// maxBytes bounds an object, so that every valid one fits into the body of a request as it is served. The largest spec
	// is half of it.
	maxBytes = 256 << 10
)

var (
	specPath   = field.NewPath("spec")
	targetPath = specPath.Child("targetSystem")
)

func validate(wi *v1alpha1.WorkloadIdentity) field.ErrorList {
	errs := validation.ValidateObjectMeta(&wi.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if wi.UID != "" && wi.Name != "" {
		errs = append(errs, validateSubject(wi)...)
	}
	audienceErrs, targetErrs := validateSpec(wi.Spec)
	if len(audienceErrs) == 0 {
		audienceErrs = append(validateText(wi.Spec.Audiences), validateAccepted(wi.Spec.Audiences, wi.Spec.TargetSystem.Type)...)
	}
	targetErrs = append(targetErrs, validateConfigText(wi.Spec.TargetSystem)...)
	if len(targetErrs) == 0 {
		_, targetErrs = parse(wi.Spec.TargetSystem)
	}
	return limited(append(append(append(errs, audienceErrs...), targetErrs...), validateSize(wi, nil)...))
}

// validateSpec checks what holds for every target system.
func validateSpec(spec v1alpha1.WorkloadIdentitySpec) (audienceErrs, targetErrs field.ErrorList) {
	return validateAudiences(spec.Audiences, audiencesPath), validateTarget(spec.TargetSystem, targetPath)
}

// validateUpdate checks of what a target system accepts only what changes: an identity that was stored by a server that knew
// less can still be labelled and deleted, and be given what is right.
func validateUpdate(wi, old *v1alpha1.WorkloadIdentity) field.ErrorList {
	// The machinery has compared the metadata by now.
	errs := validation.ValidateImmutableField(wi.Spec.TargetSystem.Type, old.Spec.TargetSystem.Type, targetPath.Child("type"))
	audienceErrs, targetErrs := validateSpec(wi.Spec)
	if len(errs) == 0 && len(audienceErrs) == 0 && !slices.Equal(wi.Spec.Audiences, old.Spec.Audiences) {
		audienceErrs = append(validateText(wi.Spec.Audiences), validateAccepted(wi.Spec.Audiences, wi.Spec.TargetSystem.Type)...)
	}
	if !sameText(wi.Spec.TargetSystem, old.Spec.TargetSystem) {
		targetErrs = append(targetErrs, validateConfigText(wi.Spec.TargetSystem)...)
	}
	if len(errs) == 0 && len(targetErrs) == 0 && !sameConfig(wi.Spec.TargetSystem, old.Spec.TargetSystem) {
		var config target.Config
		if config, targetErrs = parse(wi.Spec.TargetSystem); len(targetErrs) == 0 {
			oldConfig, _ := parse(old.Spec.TargetSystem)
			targetErrs = validateAccount(config, oldConfig)
		}
	}
	return limited(append(append(append(errs, audienceErrs...), targetErrs...), validateSize(wi, old)...))
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
			errs = append(errs, field.Invalid(path.Index(i), wording.Abbreviate(audience), fmt.Sprintf("is %d characters long, at most %d are allowed", n, maxAudienceLength)))
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
	return strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) })
}

func validateTarget(system v1alpha1.TargetSystem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if system.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "name the kind of target system, such as "+strings.Join(targets.Types(), ", ")))
	} else {
		for _, message := range utilvalidation.IsDNS1123Label(system.Type) {
			errs = append(errs, field.Invalid(path.Child("type"), wording.Abbreviate(system.Type), message))
		}
	}
	if system.ProviderConfig != nil {
		errs = append(errs, validateProviderConfig(system.ProviderConfig.Raw, path.Child("providerConfig"))...)
	}
	return errs
}

// validateSize checks that the object can still be written as a whole. One that was stored larger may only shrink.
// Left out is what the server adds by itself: managed fields and status.
func validateSize(wi, old *v1alpha1.WorkloadIdentity) field.ErrorList {
	size := encodedSize(wi)
	if size <= maxBytes || old != nil && size <= encodedSize(old) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), size, fmt.Sprintf("makes the object %d bytes of JSON, at most %d are allowed", size, maxBytes))}
}

func encodedSize(wi *v1alpha1.WorkloadIdentity) int {
	shown := *wi
	shown.ManagedFields, shown.Status = nil, v1alpha1.WorkloadIdentityStatus{}
	text, err := json.Marshal(&shown)
	if err != nil {
		return 0 // a providerConfig that is not JSON, which is refused for that
	}
	return len(text)
}
