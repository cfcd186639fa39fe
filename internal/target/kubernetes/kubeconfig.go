package kubernetes

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/target"
)

// kubeconfig is the file of client-go, as far as it is needed.
func (c config) kubeconfig(place target.Place) string {
	const name = "workload-identity"
	cluster, context := map[string]any{"server": c.server}, map[string]any{"cluster": name, "user": name}
	if len(c.authorities) > 0 {
		cluster["certificate-authority-data"] = c.authorities
	}
	if c.namespace != "" {
		context["namespace"] = c.namespace
	}
	return yamlText(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []any{map[string]any{"name": name, "cluster": cluster}},
		"contexts":        []any{map[string]any{"name": name, "context": context}},
		"current-context": name,
		"users":           []any{map[string]any{"name": name, "user": map[string]any{"tokenFile": place.Token()}}},
	})
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
