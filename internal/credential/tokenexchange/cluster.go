package tokenexchange

import (
	"encoding/json"

	"github.com/credence-id/credence/internal/credential"
)

// WithCluster returns s with what a cluster's own configuration says: the field tokenExchange of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"tokenExchange": {"audiences": ["production"], "resources": ["https://production.example.com"], "scopes": ["read"],
//	                   "requestedTokenType": "urn:ietf:params:oauth:token-type:jwt"}}
//
// It says what s leaves open: a field that says otherwise than s is an error. It names no endpoint, client or file: the token in the file
// must not go to whichever server a cluster names. A configuration of another form is none of this package's, but an unknown field of
// tokenExchange is an error.
func (s Source) WithCluster(raw json.RawMessage) (Source, error) {
	var outer struct {
		TokenExchange json.RawMessage `json:"tokenExchange"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.TokenExchange == nil {
		return s, nil
	}
	var config struct {
		Audiences, Resources, Scopes []string
		RequestedTokenType           string
	}
	if err := credential.FromCluster(outer.TokenExchange, "tokenExchange", &config); err != nil {
		return s, err
	}
	for _, list := range []struct {
		field  string
		own    *[]string
		config []string
	}{{"audiences", &s.Audiences, config.Audiences}, {"resources", &s.Resources, config.Resources}, {"scopes", &s.Scopes, config.Scopes}} {
		if err := credential.ListLeftOpen(list.field, list.own, list.config, ", "); err != nil {
			return s, err
		}
	}
	return s, credential.LeftOpen("requestedTokenType", &s.RequestedTokenType, config.RequestedTokenType)
}
