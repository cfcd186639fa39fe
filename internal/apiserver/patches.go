package apiserver

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// checkPatch refuses merge patches and objects to apply whose providerConfig has a key twice: the machinery merges a patch
// before validation, and keeps the last of the two. A JSON patch holds values, which validation sees whole.
func checkPatch(name, contentType string, body []byte) error {
	if strings.Contains(contentType, "json-patch") {
		return nil
	}
	if !json.Valid(body) {
		if _, err := yaml.YAMLToJSON(body); err != nil {
			return nil // checked later: it will be refused as a whole
		}
		if _, err := yaml.YAMLToJSONStrict(body); err != nil && bytes.Contains(body, []byte("providerConfig")) {
			return apierrors.NewBadRequest("decode patch: " + err.Error())
		}
		return nil
	}
	raw := providerConfig(body)
	if raw == nil {
		return nil // checked later
	}
	return invalidIdentity(name, workloadidentity.CheckProviderConfigKeys(raw))
}
