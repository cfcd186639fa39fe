package apiserver

import (
	"slices"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// ServiceAccountIssuer is the issuer of the cluster's own service account tokens.
const ServiceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

// Settings is what differs from one cluster to the next.
type Settings struct {
	// Program is the file of another kube-apiserver, which is run in place of the one in this binary. It may be empty.
	Program                  string
	PKI                      pki.Files
	Etcd                     string // unix:// URL
	ServiceCIDR              string
	AuthenticationConfigFile string
	AuditPolicyFile          string
	AuditLogFile             string
	// NodeAddress is that of the node of the cluster, and with this server's port that of Service default/kubernetes; EgressConfigFile
	// is an EgressSelectorConfiguration for connections to the node, Services and pods. Empty if there is no node.
	NodeAddress, EgressConfigFile string
	FeatureGates                  string   // as on the command line, may be empty
	Extra                         []string // more flags, after and so above all others
}

// args is the command line of kube-apiserver as in production, save that
// everything is on the loopback.
func (s Settings) args() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--external-hostname=localhost",
		"--service-cluster-ip-range=" + s.ServiceCIDR,
		"--etcd-servers=" + s.Etcd,

		"--tls-cert-file=" + s.PKI.APIServer.Cert,
		"--tls-private-key-file=" + s.PKI.APIServer.Key,
		"--client-ca-file=" + s.PKI.Authority.Cert,
		"--kubelet-certificate-authority=" + s.PKI.Authority.Cert,
		"--kubelet-client-certificate=" + s.PKI.KubeletClient.Cert,
		"--kubelet-client-key=" + s.PKI.KubeletClient.Key,

		"--authentication-config=" + s.AuthenticationConfigFile,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--enable-bootstrap-token-auth=true",

		"--service-account-issuer=" + ServiceAccountIssuer,

		"--proxy-client-cert-file=" + s.PKI.FrontProxyClient.Cert,
		"--proxy-client-key-file=" + s.PKI.FrontProxyClient.Key,
		"--requestheader-client-ca-file=" + s.PKI.FrontProxy.Cert,
		"--requestheader-allowed-names=" + pki.FrontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		// A Service of type ExternalName is followed by its name and reaches a
		// process beside us; any other is reached by its address.
		"--enable-aggregator-routing=false",

		"--audit-policy-file=" + s.AuditPolicyFile,
		"--audit-log-path=" + s.AuditLogFile,
		"--audit-log-maxsize=50", // MB
		"--audit-log-maxbackup=2",

		"--profiling=false",
		// Bounds the shutdown to seconds: requests in flight are finished, watches are cut.
		"--shutdown-send-retry-after=true",
	}
	if s.NodeAddress == "" {
		// The Endpoints of Service default/kubernetes may not hold a loopback address.
		args = append(args, "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none")
	} else {
		args = append(args, "--advertise-address="+s.NodeAddress, "--egress-selector-config-file="+s.EgressConfigFile,
			"--kubelet-preferred-address-types=InternalIP")
	}
	if !SignsExternally(s.Extra) {
		args = append(args,
			"--service-account-signing-key-file="+s.PKI.ServiceAccount.Key,
			"--service-account-key-file="+s.PKI.ServiceAccount.Cert)
	}
	if s.FeatureGates != "" {
		args = append(args, "--feature-gates="+s.FeatureGates)
	}
	return append(args, s.Extra...)
}

// SignsExternally reports whether further flags leave the signing of service account tokens to another program. kube-apiserver
// refuses keys of its own besides.
func SignsExternally(extra []string) bool {
	return slices.ContainsFunc(extra, func(flag string) bool {
		return strings.HasPrefix(strings.TrimLeft(flag, "-"), "service-account-signing-endpoint=")
	})
}
