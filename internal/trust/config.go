package trust

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// fields are the values of a providerConfig that are texts. What else is in it is for its adapter to judge.
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

// want returns the parts of a field that must have a form. Identities that were written before a rule existed, or by another
// API server, need not have it.
func (i Identity) want(field string, form *regexp.Regexp, example string) ([]string, error) {
	value, ok := i.fields()[field]
	if !ok || value == "" {
		return nil, fmt.Errorf("spec.targetSystem.providerConfig.%s is missing: set it to something such as %s", field, example)
	}
	parts := form.FindStringSubmatch(value)
	if parts == nil {
		return nil, fmt.Errorf("spec.targetSystem.providerConfig.%s is %q, and not of the form %s", field, value, example)
	}
	return parts, nil
}
