package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// WithCluster returns s with what a cluster's own configuration says: the field oidc of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves clusters with several providers.
//
//	{"oidc": {"issuer": "https://login.example.com", "clientID": "kubernetes", "scopes": ["groups"], "present": "id",
//	          "parameters": {"prompt": "consent"}}}
//
// What it leaves out stays. It names no file, port or flow: those belong to the machine. A configuration of another form is none of
// this package's, but an unknown field of oidc is an error.
func (s Settings) WithCluster(raw json.RawMessage) (Settings, error) {
	var outer struct {
		OIDC json.RawMessage `json:"oidc"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.OIDC == nil {
		return s, nil
	}
	var said struct {
		Issuer     string            `json:"issuer"`
		ClientID   string            `json:"clientID"`
		Scopes     []string          `json:"scopes"`
		Present    Token             `json:"present"`
		Parameters map[string]string `json:"parameters"`
	}
	decoder := json.NewDecoder(bytes.NewReader(outer.OIDC))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return s, fmt.Errorf("read oidc in the configuration of the cluster: %w", err)
	}
	if said.Issuer != "" {
		s.Issuer = said.Issuer
	}
	if said.ClientID != "" {
		s.ClientID = said.ClientID
	}
	if said.Scopes != nil {
		s.Scopes = said.Scopes
	}
	if said.Present != "" {
		s.Present = said.Present
	}
	if said.Parameters != nil {
		s.Parameters = maps.Clone(s.Parameters)
		if s.Parameters == nil {
			s.Parameters = map[string]string{}
		}
		maps.Copy(s.Parameters, said.Parameters)
	}
	return s, nil
}
