package tokensecret

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Config returns the data key config: a providerConfig as YAML with sorted keys, or nil.
func Config(providerConfig *runtime.RawExtension) ([]byte, error) {
	if providerConfig == nil || len(bytes.TrimSpace(providerConfig.Raw)) == 0 || bytes.Equal(bytes.TrimSpace(providerConfig.Raw), []byte("null")) {
		return nil, nil
	}
	config, err := yaml.JSONToYAML(providerConfig.Raw)
	if err != nil {
		return nil, fmt.Errorf("write providerConfig as YAML: %w", err)
	}
	return config, nil
}

// ProviderConfig returns the JSON of a data key config. A key that stands twice is an error.
func ProviderConfig(config []byte) ([]byte, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil, nil
	}
	providerConfig, err := yaml.YAMLToJSONStrict(config)
	if err != nil {
		return nil, fmt.Errorf("read config as YAML: %w", err)
	}
	return providerConfig, nil
}
