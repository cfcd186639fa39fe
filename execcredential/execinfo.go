package execcredential

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
)

// execInfoVariable describes the requested credential to a program.
const execInfoVariable = "KUBERNETES_EXEC_INFO"

// The fields of ExecCredential that go to a program, in the order in which Kubernetes' own client writes them.
type execInfo struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Spec       execSpec `json:"spec"`
}

type execSpec struct {
	Cluster     *execCluster `json:"cluster,omitempty"`
	Interactive bool         `json:"interactive"`
}

type execCluster struct {
	Server                   string          `json:"server"`
	TLSServerName            string          `json:"tls-server-name,omitempty"`
	InsecureSkipTLSVerify    bool            `json:"insecure-skip-tls-verify,omitempty"`
	CertificateAuthorityData []byte          `json:"certificate-authority-data,omitempty"`
	ProxyURL                 string          `json:"proxy-url,omitempty"`
	DisableCompression       bool            `json:"disable-compression,omitempty"`
	Config                   json.RawMessage `json:"config"` // null if it has no config
}

// execInfo is the value of KUBERNETES_EXEC_INFO, byte for byte what client-go writes, its newline included.
func (c Config) execInfo(interactive bool) (string, error) {
	info := execInfo{Kind: "ExecCredential", APIVersion: c.APIVersion, Spec: execSpec{Interactive: interactive}}
	if c.ProvideClusterInfo {
		info.Spec.Cluster = &execCluster{
			Server:                   c.Cluster.Server,
			TLSServerName:            c.Cluster.TLSServerName,
			InsecureSkipTLSVerify:    c.Cluster.InsecureSkipTLSVerify,
			CertificateAuthorityData: c.Cluster.CertificateAuthorityData,
			ProxyURL:                 c.Cluster.ProxyURL,
			DisableCompression:       c.Cluster.DisableCompression,
			Config:                   c.Cluster.Extension,
		}
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(info); err != nil {
		return "", fmt.Errorf("write %s: %w", execInfoVariable, err)
	}
	return out.String(), nil
}

// withoutComments is PEM without the text between its blocks, which readers of certificates ignore. Bundles that describe every
// certificate in words are mostly that.
func withoutComments(data []byte) []byte {
	var out bytes.Buffer
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if err := pem.Encode(&out, block); err != nil {
			return data
		}
	}
	if out.Len() == 0 {
		return data
	}
	return out.Bytes()
}
