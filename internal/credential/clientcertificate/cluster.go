package clientcertificate

import (
	"cmp"
	"encoding/json"

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
	var config struct {
		User     string   `json:"user"`
		Signer   string   `json:"signer"`
		Duration string   `json:"duration"`
		Groups   []string `json:"groups"`
	}
	if err := credential.FromCluster(raw, "clientCertificate", &config); err != nil {
		return s, err
	}
	err := cmp.Or(
		credential.DurationLeftOpen("clientCertificate", &s.Duration, config.Duration, "1h"),
		credential.LeftOpen("user", &s.User, config.User),
		credential.LeftOpen("signer", &s.Signer, config.Signer),
		credential.ListLeftOpen("groups", &s.Groups, config.Groups, ", "),
	)
	return s, err
}
