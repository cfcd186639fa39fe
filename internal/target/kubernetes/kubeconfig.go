package kubernetes

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/target"
)

// kubeconfig is the file of client-go, as far as it is needed.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type cluster struct {
	Server                   string `json:"server"`
	CertificateAuthorityData []byte `json:"certificate-authority-data,omitempty"`
}

type namedContext struct {
	Name    string         `json:"name"`
	Context clusterContext `json:"context"`
}

type clusterContext struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace,omitempty"`
	User      string `json:"user"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type user struct {
	TokenFile string `json:"tokenFile"`
}

func (c config) kubeconfig(place target.Place) string {
	const name = "workload-identity"
	content, err := yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{Name: name, Cluster: cluster{Server: c.server, CertificateAuthorityData: c.authorities}}},
		Contexts:       []namedContext{{Name: name, Context: clusterContext{Cluster: name, Namespace: c.namespace, User: name}}},
		CurrentContext: name,
		Users:          []namedUser{{Name: name, User: user{TokenFile: place.Token()}}},
	})
	if err != nil {
		panic(err) // strings and bytes always have a YAML form
	}
	return string(content)
}

// certificates returns the certificates in the base64 form of PEM, written anew: other content is refused.
func certificates(data string) ([]byte, error) {
	const maxBytes = 32 << 10
	if len(data) > maxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxBytes)
	}
	if strings.ContainsAny(data, "\r\n") { // which the decoder passes over
		return nil, errors.New("has line ends")
	}
	rest, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	var out bytes.Buffer
	for rest = bytes.TrimSpace(rest); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN CERTIFICATE-----")) {
			return nil, errors.New("holds something else than certificates")
		}
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("holds something else than certificates")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("holds no certificate")
	}
	return out.Bytes(), nil
}
