package tokenexchange

import (
	"cmp"
	"encoding/json"

	"github.com/credence-id/credence/internal/credential"
)

// WithCluster returns s with the cluster's own configuration: the field tokenExchange of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"tokenExchange": {"audiences": ["production"], "resources": ["https://production.example.com"], "scopes": ["read"],
//	                   "requestedTokenType": "urn:ietf:params:oauth:token-type:jwt"}}
//
// It sets only fields that s leaves open: a different value than that of s is an error. It names no endpoint, client or file: the token
// in the file must not go to a server that a cluster names. A configuration without the field is ignored, but an unknown field of
// tokenExchange is an error.
func (s Source) WithCluster(raw json.RawMessage) (Source, error) {
	var config struct {
		Audiences          []string `json:"audiences"`
		Resources          []string `json:"resources"`
		Scopes             []string `json:"scopes"`
		RequestedTokenType string   `json:"requestedTokenType"`
	}
	if err := credential.FromCluster(raw, "tokenExchange", &config); err != nil {
		return s, err
	}
	err := cmp.Or(
		credential.ListLeftOpen("audiences", &s.Audiences, config.Audiences, ", "),
		credential.ListLeftOpen("resources", &s.Resources, config.Resources, ", "),
		credential.ListLeftOpen("scopes", &s.Scopes, config.Scopes, ", "),
		credential.LeftOpen("requestedTokenType", &s.RequestedTokenType, config.RequestedTokenType),
	)
	return s, err
}
