package pki

import (
	"crypto/x509"
	"net"
	"path/filepath"
	"time"
)

// NodeFiles is where the certificates lie that only a cluster with a node has.
type NodeFiles struct {
	Kubelet         Pair // the kubelet serves with it
	KubeletUser     Pair // user system:node:<name>
	Scheduler       Pair // kube-scheduler serves with it
	SchedulerClient Pair // user system:kube-scheduler
	ProxyClient     Pair // user system:kube-proxy
	DNSClient       Pair // user DNSUser
}

// DNSUser is the user that cluster DNS is.
const DNSUser = "credence-devcluster-dns"

// KubeletCaller is the user that kube-apiserver is to kubelets.
const KubeletCaller = "kube-apiserver-kubelet-client"

// EnsureNode makes dir, which Ensure made before, hold what the node of that name and address and a scheduler need besides, as Ensure
// does.
func EnsureNode(dir, name, address string, now time.Time) (NodeFiles, error) {
	pair := func(name string) Pair {
		return Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	}
	files := NodeFiles{
		Kubelet: pair("kubelet"), KubeletUser: pair("kubelet-client"),
		Scheduler: pair("scheduler"), SchedulerClient: pair("scheduler-client"),
		ProxyClient: pair("proxy-client"), DNSClient: pair("dns-client"),
	}
	cluster, err := ensureAuthority(layout(dir).Authority, "credence-devcluster-ca", now)
	if err != nil {
		return NodeFiles{}, err
	}
	user := "system:node:" + name
	for _, l := range []leaf{
		{files: files.Kubelet, signer: cluster, user: user, group: "system:nodes", usage: x509.ExtKeyUsageServerAuth, ips: []net.IP{net.ParseIP(address)}},
		{files: files.KubeletUser, signer: cluster, user: user, group: "system:nodes", usage: x509.ExtKeyUsageClientAuth},
		{
			files: files.Scheduler, signer: cluster, user: "kube-scheduler", usage: x509.ExtKeyUsageServerAuth,
			names: []string{"localhost"}, ips: []net.IP{net.IPv4(127, 0, 0, 1)},
		},
		{files: files.SchedulerClient, signer: cluster, user: "system:kube-scheduler", usage: x509.ExtKeyUsageClientAuth},
		{files: files.ProxyClient, signer: cluster, user: "system:kube-proxy", usage: x509.ExtKeyUsageClientAuth},
		{files: files.DNSClient, signer: cluster, user: DNSUser, usage: x509.ExtKeyUsageClientAuth},
	} {
		if err := ensureLeaf(l, now); err != nil {
			return NodeFiles{}, err
		}
	}
	return files, nil
}
