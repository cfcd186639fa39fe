package credential

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Versions of the protocol.
const (
	V1      = "client.authentication.k8s.io/v1"
	V1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// EnvironmentVariable holds the request of a client, as an ExecCredential in JSON.
const EnvironmentVariable = "KUBERNETES_EXEC_INFO"

// ExecInfo is the request of a client.
type ExecInfo struct {
	// APIVersion is V1 or V1Beta1. The answer has the same.
	APIVersion string
	// Interactive reports whether the user may be prompted.
	Interactive bool
	// Cluster is the cluster that the client connects to; nil if the client does not name it.
	Cluster *Cluster
	// FromClient reports whether a client sent the request by the protocol; otherwise a person or a script ran the program.
	FromClient bool
}

// Cluster is the cluster that a client connects to, as far as the client describes it.
type Cluster struct {
	Server                string
	TLSServerName         string
	ProxyURL              string
	InsecureSkipTLSVerify bool
	DisableCompression    bool
	// CAData holds PEM certificates; empty: the roots of the system.
	CAData []byte
	// Config is the extension client.authentication.k8s.io/exec of the kubeconfig's cluster, or nil.
	Config json.RawMessage
}

// kind is the kind of both the request and the answer.
const kind = "ExecCredential"

// wireExecInfo is an ExecCredential as a client writes it. The last names of a cluster are those of KEP-541's text; clients have
// the others.
type wireExecInfo struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		Interactive bool `json:"interactive"`
		Cluster     *struct {
			Server                string          `json:"server"`
			TLSServerName         string          `json:"tls-server-name"`
			InsecureSkipTLSVerify bool            `json:"insecure-skip-tls-verify"`
			CAData                []byte          `json:"certificate-authority-data"`
			ProxyURL              string          `json:"proxy-url"`
			DisableCompression    bool            `json:"disable-compression"`
			Config                json.RawMessage `json:"config"`

			DocumentServerName string `json:"serverName"`
			DocumentCAData     []byte `json:"caData"`
		} `json:"cluster"`
	} `json:"spec"`
}

// ParseExecInfo reads the value of KUBERNETES_EXEC_INFO. If it is absent or empty, the answer is of V1, and the user may be
// prompted if standard input is a terminal. An error names the known versions and never quotes the value.
func ParseExecInfo(environment string, present, terminal bool) (ExecInfo, error) {
	if !present || environment == "" {
		return ExecInfo{APIVersion: V1, Interactive: terminal}, nil
	}
	var wire wireExecInfo
	if err := json.Unmarshal([]byte(environment), &wire); err != nil {
		return ExecInfo{}, fmt.Errorf("read %s: it is not an %s in JSON: %w", EnvironmentVariable, kind, plainJSONError(err))
	}
	if wire.Kind != "" && wire.Kind != kind {
		return ExecInfo{}, fmt.Errorf("read %s: its kind is %q, not %s", EnvironmentVariable, shorten(wire.Kind), kind)
	}
	if err := checkVersion(wire.APIVersion); err != nil {
		return ExecInfo{}, fmt.Errorf("read %s: %w", EnvironmentVariable, err)
	}
	info := ExecInfo{APIVersion: wire.APIVersion, Interactive: wire.Spec.Interactive, FromClient: true}
	if c := wire.Spec.Cluster; c != nil {
		info.Cluster = &Cluster{
			Server: c.Server, TLSServerName: c.TLSServerName, ProxyURL: c.ProxyURL, InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
			DisableCompression: c.DisableCompression, CAData: c.CAData, Config: c.Config,
		}
		if c.TLSServerName == "" {
			info.Cluster.TLSServerName = c.DocumentServerName
		}
		if len(c.CAData) == 0 {
			info.Cluster.CAData = c.DocumentCAData
		}
		if string(c.Config) == "null" {
			info.Cluster.Config = nil
		}
	}
	return info, nil
}

func checkVersion(version string) error {
	switch version {
	case V1, V1Beta1:
		return nil
	case "":
		return fmt.Errorf("no apiVersion: known are %s and %s", V1, V1Beta1)
	}
	return fmt.Errorf("unknown apiVersion %q: known are %s and %s; set one of them as apiVersion of the user's exec in the kubeconfig",
		shorten(version), V1, V1Beta1)
}

// plainJSONError is an error of encoding/json without what it quotes of the text.
func plainJSONError(err error) error {
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrongType.Field == "" {
			return errors.New("it is not an object")
		}
		return fmt.Errorf("%s is not %s", wrongType.Field, wrongType.Type)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("syntax error at byte %d", syntax.Offset)
	}
	return errors.New("a field has a wrong value")
}

func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
