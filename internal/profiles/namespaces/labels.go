package namespaces

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
)

// bindingLabel, with bindingValue, is on the RoleBindings that templates give.
const (
	bindingLabel = "accounts.credence.dev/namespace-template"
	bindingValue = "rolebinding"
)

const podSecurity = "pod-security.kubernetes.io/"

// strictness are the values of the labels that a template may set, each stricter than those before it. A namespace without the label has what the cluster has
// for all: of the values before the empty one that may be stricter, so that a template sets those after it alone. Labels of versions are by newness.
func strictness(label string) []string {
	switch label {
	case v1alpha1.LabelNamespaceIdentities, accounts.LabelNamespaceProfiles:
		return []string{"", v1alpha1.NamespaceEnabled}
	case v1alpha1.LabelNamespaceDelivery: // in Secrets tokens are stored
		return []string{v1alpha1.DeliverySecret, "", v1alpha1.DeliveryCSI}
	case access.ModeLabel:
		return []string{"", "audit", "warn", access.Enforce}
	case podSecurity + "enforce", podSecurity + "warn", podSecurity + "audit":
		return []string{"privileged", "", "baseline", "restricted"}
	}
	return nil
}

// missing are the labels of a template that a namespace lacks, or has softer. Stricter ones, and those with values that are not known, stay.
func missing(wanted, stored map[string]string) map[string]string {
	found := map[string]string{}
	for label, value := range wanted {
		values := strictness(label)
		if at := slices.Index(values, stored[label]); at >= 0 && at < slices.Index(values, value) {
			found[label] = value
		}
	}
	return found
}

// checkLabels returns what is wrong with the labels of a template.
func checkLabels(labels map[string]string) error {
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		values := strictness(label)
		values = values[slices.Index(values, "")+1:]
		if !slices.Contains(values, labels[label]) {
			if values == nil {
				return fmt.Errorf("spec.labels: %s is not a label that a template sets", label)
			}
			return fmt.Errorf("spec.labels: %s must be %s, not %q", label, strings.Join(values, " or "), labels[label])
		}
	}
	return nil
}
