package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/targets"
)

// checkConfig holds the providerConfig to the rules of the identity's own target system, which has no others here.
func (i Identity) checkConfig() error {
	_, errs := targets.For(i.Type).Parse(i.ProviderConfig, field.NewPath("spec", "targetSystem", "providerConfig"))
	var all []error
	for _, err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// fields are the string values of a providerConfig. The others are checked by its adapter.
func (i Identity) fields() map[string]string {
	var members map[string]any
	texts := map[string]string{}
	if json.Unmarshal(i.ProviderConfig, &members) != nil {
		return texts
	}
	for name, value := range members {
		if text, ok := value.(string); ok {
			texts[name] = text
		}
	}
	return texts
}

// parts takes apart a field that its target system has accepted.
func (i Identity) parts(field string, form *regexp.Regexp) ([]string, error) {
	parts := form.FindStringSubmatch(i.fields()[field])
	if parts == nil {
		return nil, fmt.Errorf("spec.targetSystem.providerConfig.%s is %q, which is accepted, and not understood here", field, i.fields()[field])
	}
	return parts, nil
}
