package settings

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/credence-id/credence/internal/credential"
)

// WithCluster returns s with the cluster's own configuration: the field oidc of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves clusters with several providers.
//
//	{"oidc": {"issuer": "https://login.example.com", "clientID": "kubernetes", "scopes": ["groups"], "present": "id",
//	          "parameters": {"prompt": "consent"}}}
//
// It sets only fields that s leaves open: a different value than that of s is an error, or any cluster could have the token of any
// other. It names no file, port or flow: those belong to the machine. A configuration without the field is ignored, but an unknown
// field of oidc is an error.
func (s Settings) WithCluster(raw json.RawMessage) (Settings, error) {
	var config struct {
		Issuer     string            `json:"issuer"`
		ClientID   string            `json:"clientID"`
		Scopes     []string          `json:"scopes"`
		Present    Token             `json:"present"`
		Parameters map[string]string `json:"parameters"`
	}
	if err := credential.FromCluster(raw, "oidc", &config); err != nil {
		return s, err
	}
	if err := cmp.Or(
		credential.LeftOpen("issuer", &s.Issuer, config.Issuer),
		credential.LeftOpen("clientID", &s.ClientID, config.ClientID),
		credential.LeftOpen("present", &s.Present, config.Present),
		credential.ListLeftOpen("scopes", &s.Scopes, config.Scopes, " "),
	); err != nil {
		return s, err
	}
	parameters := maps.Clone(s.Parameters)
	for name, value := range config.Parameters {
		if own, there := s.Parameters[name]; there && own != value {
			return s, credential.Contradiction("parameter "+name, own, value)
		}
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters[name] = value
	}
	s.Parameters = parameters
	return s, nil
}
