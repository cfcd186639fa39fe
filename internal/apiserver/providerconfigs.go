package apiserver

import (
	"encoding/json"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkYAMLValues refuses identities in YAML, and in JSON that the machinery reads as YAML, such as objects to apply, of which it would
// store other values than they have. document is what is not JSON.
func checkYAMLValues(name, contentType string, body []byte, document *yaml.Node) error {
	if document != nil {
		return invalidIdentity(name, workloadidentity.CheckYAML(document))
	}
	if !strings.Contains(strings.ToLower(contentType), "yaml") {
		return nil // checked later
	}
	raw := providerConfig(body)
	if raw == nil {
		return nil
	}
	return invalidIdentity(name, workloadidentity.CheckProviderConfigText(raw))
}

// providerConfig is that of an identity in JSON, or nil. Of equal keys the last counts, and case does, as for the machinery.
func providerConfig(body json.RawMessage) json.RawMessage {
	for _, name := range []string{"spec", "targetSystem", "providerConfig"} {
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil {
			return nil
		}
		body = members[name]
	}
	return body
}

func invalidIdentity(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind(), name, errs)
}
