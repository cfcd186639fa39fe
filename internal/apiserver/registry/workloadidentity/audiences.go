package workloadidentity

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxAudiencesBytes bounds the claim aud, so that the longest token stays under the 16 KiB that agents and relying parties
// read: all other claims have 2 KiB at most, header and signature of an RSA key of 4096 bits 1 KiB, and base64 adds a third.
const maxAudiencesBytes = 8 << 10

// validateText checks audiences that are right otherwise: each is what it looks like, and they fit in a token.
func validateText(audiences []string) field.ErrorList {
	var errs field.ErrorList
	for i, audience := range audiences {
		if at := strings.IndexFunc(audience, invisible); at >= 0 {
			errs = append(errs, field.Invalid(audiencesPath.Index(i), wording.Abbreviate(audience), fmt.Sprintf("has an invisible or invalid character at byte %d: %U", at, []rune(audience[at:])[0])))
		} else if strings.TrimSpace(audience) != audience {
			errs = append(errs, field.Invalid(audiencesPath.Index(i), wording.Abbreviate(audience), "must not begin or end with a space"))
		}
	}
	claim, err := json.Marshal(audiences)
	if err == nil && len(claim) > maxAudiencesBytes {
		errs = append(errs, field.Invalid(audiencesPath, fmt.Sprintf("%d bytes", len(claim)), fmt.Sprintf("must not be larger than %d bytes of JSON together: tokens would be longer than relying parties read", maxAudiencesBytes)))
	}
	return errs
}

// invisible reports whether a character is not seen, or looks like an ordinary space.
func invisible(r rune) bool {
	const blankBraille = '\u2800'
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == blankBraille
}

func validateConfigText(system v1alpha1.TargetSystem) field.ErrorList {
	if system.ProviderConfig == nil {
		return nil
	}
	if err := checkText(system.ProviderConfig.Raw); err != nil {
		return field.ErrorList{field.Invalid(providerConfigPath, "", err.Error())}
	}
	return nil
}
