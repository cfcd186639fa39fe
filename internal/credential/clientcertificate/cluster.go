package clientcertificate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// WithCluster returns s with the cluster's own configuration: the field clientCertificate of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"clientCertificate": {"user": "jane", "groups": ["developers"], "signer": "example.com/people", "duration": "1h"}}
//
// It sets only fields that s leaves open: a different value than that of s is an error. A configuration without the field is
// ignored, but an unknown field of clientCertificate is an error.
func (s Settings) WithCluster(raw json.RawMessage) (Settings, error) {
	var outer struct {
		ClientCertificate json.RawMessage `json:"clientCertificate"`
	}
	if json.Unmarshal(raw, &outer) != nil || outer.ClientCertificate == nil {
		return s, nil
	}
	var config struct {
		User     string   `json:"user"`
		Signer   string   `json:"signer"`
		Duration string   `json:"duration"`
		Groups   []string `json:"groups"`
	}
	if err := credential.FromCluster(outer.ClientCertificate, "clientCertificate", &config); err != nil {
		return s, err
	}
	if config.Duration != "" {
		d, err := time.ParseDuration(config.Duration)
		if err != nil || d <= 0 {
			return s, fmt.Errorf("read clientCertificate in the configuration of the cluster: duration %q is not one such as 1h", config.Duration)
		}
		if err := credential.LeftOpen("duration", &s.Duration, d); err != nil {
			return s, err
		}
	}
	if err := credential.LeftOpen("user", &s.User, config.User); err != nil {
		return s, err
	}
	if err := credential.LeftOpen("signer", &s.Signer, config.Signer); err != nil {
		return s, err
	}
	if err := credential.ListLeftOpen("groups", &s.Groups, config.Groups, ", "); err != nil {
		return s, err
	}
	return s, nil
}
