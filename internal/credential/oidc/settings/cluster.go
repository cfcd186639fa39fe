package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithCluster returns s with what a cluster's own configuration says: the field oidc of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves clusters with several providers.
//
//	{"oidc": {"issuer": "https://login.example.com", "clientID": "kubernetes", "scopes": ["groups"], "present": "id",
//	          "parameters": {"prompt": "consent"}}}
//
// It says what s leaves open: a field that says otherwise than s is an error, or any cluster could have the token of any other. It names
// no file, port or flow: those belong to the machine. A configuration of another form is none of this package's, but an unknown field
// of oidc is an error.
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
	for _, field := range []struct {
		name     string
		to       *string
		ofOthers string
	}{
		{"issuer", &s.Issuer, said.Issuer}, {"clientID", &s.ClientID, said.ClientID}, {"present", (*string)(&s.Present), string(said.Present)},
	} {
		if field.ofOthers == "" {
			continue
		}
		if *field.to != "" && *field.to != field.ofOthers {
			return s, otherwise(field.name, *field.to, field.ofOthers)
		}
		*field.to = field.ofOthers
	}
	if said.Scopes != nil {
		if s.Scopes != nil && !slices.Equal(s.Scopes, said.Scopes) {
			return s, otherwise("scopes", strings.Join(s.Scopes, " "), strings.Join(said.Scopes, " "))
		}
		s.Scopes = said.Scopes
	}
	parameters := maps.Clone(s.Parameters)
	for name, value := range said.Parameters {
		if own, there := s.Parameters[name]; there && own != value {
			return s, otherwise("parameter "+name, own, value)
		}
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters[name] = value
	}
	s.Parameters = parameters
	return s, nil
}

// otherwise refuses a cluster that would have another token than the command line allows: it may be anybody's.
func otherwise(field, own, ofCluster string) error {
	return fmt.Errorf("the configuration of the cluster says %s %q, and the command line %q: a cluster says only what the command line leaves open",
		field, ofCluster, own)
}
