package pki

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// renewBefore is the remaining lifetime under which a certificate is made anew at start.
	renewBefore = 30 * 24 * time.Hour
	// backdate lets a certificate work in a guest whose clock is a little behind.
	backdate = 5 * time.Minute
)

// Pair is the paths of a PEM certificate and of its PEM private key.
type Pair struct {
	Cert, Key string
}

// Files is where everything lies.
type Files struct {
	Authority  Pair // signs serving and client certificates of the cluster
	FrontProxy Pair // signs the one certificate that may speak for other users

	APIServer         Pair // kube-apiserver serves with it
	ControllerManager Pair // kube-controller-manager serves with it

	FrontProxyClient        Pair // kube-apiserver → aggregated API servers
	KubeletClient           Pair // kube-apiserver → kubelets
	AdminClient             Pair // group system:masters
	ControllerManagerClient Pair // user system:kube-controller-manager

	ServiceAccount Pair // Cert is the PEM public key here, not a certificate
}

// Ensure makes dir hold a complete PKI that is good for at least 30 days after
// now, and returns where it is. serviceIP is the cluster IP of Service
// default/kubernetes. An authority is never replaced: clients hold it.
func Ensure(dir string, serviceIP net.IP, now time.Time) (Files, error) {
	files := layout(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("make PKI directory: %w", err)
	}
	cluster, err := ensureAuthority(files.Authority, "credence-devcluster-ca", now)
	if err != nil {
		return Files{}, err
	}
	frontProxy, err := ensureAuthority(files.FrontProxy, "credence-devcluster-front-proxy-ca", now)
	if err != nil {
		return Files{}, err
	}
	for _, l := range leaves(files, serviceIP, cluster, frontProxy) {
		if err := ensureLeaf(l, now); err != nil {
			return Files{}, err
		}
	}
	if err := ensureServiceAccountKey(files.ServiceAccount); err != nil {
		return Files{}, err
	}
	return files, nil
}

func layout(dir string) Files {
	pair := func(name string) Pair {
		return Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	}
	return Files{
		Authority:               pair("ca"),
		FrontProxy:              pair("front-proxy-ca"),
		APIServer:               pair("apiserver"),
		ControllerManager:       pair("controller-manager"),
		FrontProxyClient:        pair("front-proxy-client"),
		KubeletClient:           pair("apiserver-kubelet-client"),
		AdminClient:             pair("admin"),
		ControllerManagerClient: pair("controller-manager-client"),
		ServiceAccount:          Pair{Cert: filepath.Join(dir, "sa.pub"), Key: filepath.Join(dir, "sa.key")},
	}
}
