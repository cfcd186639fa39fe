package clientcertificate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// WithCluster returns s with what a cluster's own configuration says: the field clientCertificate of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"clientCertificate": {"user": "jane", "groups": ["developers"], "signer": "example.com/people", "duration": "1h"}}
//
// It says what s leaves open: a field that says otherwise than s is an error. A configuration of another form is none of this
// package's, but an unknown field of clientCertificate is an error.
func (s Settings) WithCluster(raw json.RawMessage) (Settings, error) {
	var outer struct {
		ClientCertificate json.RawMessage `json:"clientCertificate"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.ClientCertificate == nil {
		return s, nil
	}
	var said struct {
		User, Signer, Duration string
		Groups                 []string
	}
	decoder := json.NewDecoder(bytes.NewReader(outer.ClientCertificate))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return s, fmt.Errorf("read clientCertificate in the configuration of the cluster: %w", err)
	}
	if said.Duration != "" {
		d, err := time.ParseDuration(said.Duration)
		if err != nil || d <= 0 {
			return s, fmt.Errorf("read clientCertificate in the configuration of the cluster: duration %q is not one such as 1h", said.Duration)
		}
		if s.Duration != 0 && s.Duration != d {
			return s, otherwise("duration", s.Duration.String(), d.String())
		}
		s.Duration = d
	}
	for _, field := range []struct {
		name     string
		to       *string
		ofOthers string
	}{
		{"user", &s.User, said.User}, {"signer", &s.Signer, said.Signer},
	} {
		if field.ofOthers == "" {
			continue
		}
		if *field.to != "" && *field.to != field.ofOthers {
			return s, otherwise(field.name, *field.to, field.ofOthers)
		}
		*field.to = field.ofOthers
	}
	if said.Groups != nil {
		if s.Groups != nil && !slices.Equal(s.Groups, said.Groups) {
			return s, otherwise("groups", strings.Join(s.Groups, ", "), strings.Join(said.Groups, ", "))
		}
		s.Groups = said.Groups
	}
	return s, nil
}

// otherwise refuses a cluster that would have another certificate than the command line allows: it may be anybody's.
func otherwise(field, own, ofCluster string) error {
	return fmt.Errorf("the configuration of the cluster says %s %q, and the command line %q: a cluster says only what the command line leaves open",
		field, ofCluster, own)
}
