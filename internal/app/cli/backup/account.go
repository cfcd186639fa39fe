package backup

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/targets"
)

// account words the account of a providerConfig, and the hosts that tokens are sent to. One that no adapter understands is shown whole. It is empty
// without a providerConfig.
func account(system v1alpha1.TargetSystem) string {
	if system.ProviderConfig == nil {
		return ""
	}
	const root = "providerConfig"
	var words []string
	if config, _ := targets.For(system.Type).Parse(system.ProviderConfig.Raw, field.NewPath(root)); config != nil {
		for _, fixed := range config.Account() {
			name := strings.TrimPrefix(fixed.Path.String(), root+".")
			if fixed.Host {
				name = "tokens go to"
			}
			if fixed.Value != "" {
				words = append(words, name+" "+fixed.Value)
			}
		}
	}
	if len(words) == 0 {
		return root + " " + string(system.ProviderConfig.Raw) // of a file it is compact
	}
	return strings.Join(words, ", ")
}
