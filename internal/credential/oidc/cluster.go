package oidc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// WithCluster returns c with what a cluster's own configuration says: the field oidc of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves clusters with several providers.
//
//	{"oidc": {"issuer": "https://login.example.com", "clientID": "kubernetes", "scopes": ["groups"], "present": "id",
//	          "parameters": {"prompt": "consent"}}}
//
// What it leaves out stays. It names no file, port or flow: those belong to the machine. A configuration of another form is none of
// this package's, but an unknown field of oidc is an error.
func (c Config) WithCluster(raw json.RawMessage) (Config, error) {
	var outer struct {
		OIDC json.RawMessage `json:"oidc"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.OIDC == nil {
		return c, nil
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
		return c, fmt.Errorf("read oidc in the configuration of the cluster: %w", err)
	}
	if said.Issuer != "" {
		c.Issuer = said.Issuer
	}
	if said.ClientID != "" {
		c.ClientID = said.ClientID
	}
	if said.Scopes != nil {
		c.Scopes = said.Scopes
	}
	if said.Present != "" {
		c.Present = said.Present
	}
	if said.Parameters != nil {
		c.Parameters = maps.Clone(c.Parameters)
		if c.Parameters == nil {
			c.Parameters = map[string]string{}
		}
		maps.Copy(c.Parameters, said.Parameters)
	}
	return c, nil
}
