package controllermanager

import "github.com/credence-id/credence/devcluster/internal/pki"

// Settings is what differs from one cluster to the next.
type Settings struct {
	// Program is the file of another kube-controller-manager, which is run in place of the one in this binary. It may be empty.
	Program       string
	PKI           pki.Files
	Kubeconfig    string // user system:kube-controller-manager
	ServiceCIDR   string
	VolumePlugins string   // directory of volume plugins, so that none of the machine's is used
	FeatureGates  string   // as on the command line, may be empty
	Extra         []string // more flags, after and so above all others
	// SignsExternally is true if service account tokens are signed by another program.
	SignsExternally bool
}

func (s Settings) args() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--kubeconfig=" + s.Kubeconfig,
		"--authentication-kubeconfig=" + s.Kubeconfig,
		"--authorization-kubeconfig=" + s.Kubeconfig,
		// The authority is given here, so it need not be looked up in the cluster. One more, for proxies in front, would hold one more
		// inotify instance, as each signer does.
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + s.PKI.Authority.Cert,
		"--tls-cert-file=" + s.PKI.ControllerManager.Cert,
		"--tls-private-key-file=" + s.PKI.ControllerManager.Key,

		"--use-service-account-credentials=true",
		"--root-ca-file=" + s.PKI.Authority.Cert,
		"--cluster-signing-kube-apiserver-client-cert-file=" + s.PKI.Authority.Cert,
		"--cluster-signing-kube-apiserver-client-key-file=" + s.PKI.Authority.Key,
		"--service-cluster-ip-range=" + s.ServiceCIDR,
		"--flex-volume-plugin-dir=" + s.VolumePlugins,

		"--leader-elect=false",
		"--profiling=false",
		// It is the only client of this server: don't let it wait for its own rate limit.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	// Other versions of Kubernetes may not have it.
	if s.Program == "" {
		args = append(args, "--controller-shutdown-timeout=2s")
	}
	// With a signer that is not the cluster's own, no server would accept tokens that this key signs.
	if !s.SignsExternally {
		args = append(args, "--service-account-private-key-file="+s.PKI.ServiceAccount.Key)
	}
	if s.FeatureGates != "" {
		args = append(args, "--feature-gates="+s.FeatureGates)
	}
	return append(args, s.Extra...)
}
