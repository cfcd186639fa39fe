package credential

import "encoding/json"

// Versions of the protocol.
const (
	V1      = "client.authentication.k8s.io/v1"
	V1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// EnvironmentVariable is where a client says what it asks for.
const EnvironmentVariable = "KUBERNETES_EXEC_INFO"

// Ask is what a client asks for.
type Ask struct {
	// APIVersion is V1 or V1Beta1. The answer has the same.
	APIVersion string
	// Interactive says whether a person may be asked.
	Interactive bool
	// Cluster is what the client talks to; nil if it does not say.
	Cluster *Cluster
	// FromClient says that a client asked by the protocol, and not a person or script without it.
	FromClient bool
}

// Cluster is the cluster that a client talks to, as far as it says.
type Cluster struct {
	Server                string
	TLSServerName         string
	ProxyURL              string
	InsecureSkipTLSVerify bool
	DisableCompression    bool
	// CAData holds PEM certificates; empty: the roots of the system.
	CAData []byte
	// Config is the extension client.authentication.k8s.io/exec of the kubeconfig's cluster; nil if there is none.
	Config json.RawMessage
}
