package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"time"
)

type leaf struct {
	files  Pair
	signer authority
	user   string
	group  string
	usage  x509.ExtKeyUsage
	names  []string
	ips    []net.IP
}

func leaves(files Files, serviceIP net.IP, cluster, frontProxy authority) []leaf {
	loopback := net.IPv4(127, 0, 0, 1)
	return []leaf{
		{
			files: files.APIServer, signer: cluster, user: "kube-apiserver", usage: x509.ExtKeyUsageServerAuth,
			names: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
			ips:   []net.IP{loopback, serviceIP},
		},
		{
			files: files.ControllerManager, signer: cluster, user: "kube-controller-manager", usage: x509.ExtKeyUsageServerAuth,
			names: []string{"localhost"}, ips: []net.IP{loopback},
		},
		{files: files.FrontProxyClient, signer: frontProxy, user: FrontProxyUser, usage: x509.ExtKeyUsageClientAuth},
		{files: files.KubeletClient, signer: cluster, user: KubeletCaller, usage: x509.ExtKeyUsageClientAuth},
		{files: files.AdminClient, signer: cluster, user: "credence-admin", group: "system:masters", usage: x509.ExtKeyUsageClientAuth},
		{files: files.ControllerManagerClient, signer: cluster, user: "system:kube-controller-manager", usage: x509.ExtKeyUsageClientAuth},
	}
}

// FrontProxyUser is the common name that aggregated API servers accept as the front proxy.
const FrontProxyUser = "front-proxy-client"

func ensureLeaf(l leaf, now time.Time) error {
	good, err := l.good(now)
	if err != nil || good {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of %s: %w", l.user, err)
	}
	template := &x509.Certificate{
		Subject:     l.subject(),
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
		DNSNames:    l.names,
		IPAddresses: l.ips,
	}
	cert, err := sign(template, l.signer, key.Public())
	if err != nil {
		return fmt.Errorf("sign certificate of %s: %w", l.user, err)
	}
	return writePair(l.files, cert, key)
}

func (l leaf) subject() pkix.Name {
	name := pkix.Name{CommonName: l.user}
	if l.group != "" {
		name.Organization = []string{l.group}
	}
	return name
}

// good reports whether the pair on disk is the one that would be made now, with
// time left. A pair that a crash left half written is not good; a key that
// others could read is an error, because it may have been.
func (l leaf) good(now time.Time) (bool, error) {
	cert, err := readCertificate(l.files.Cert)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key, err := readKey(l.files.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return sameKey(key.Public(), cert.PublicKey) &&
		cert.CheckSignatureFrom(l.signer.cert) == nil &&
		!now.Before(cert.NotBefore) && !now.Add(renewBefore).After(cert.NotAfter) &&
		cert.Subject.String() == l.subject().String() &&
		slices.Equal(cert.DNSNames, l.names) &&
		slices.EqualFunc(cert.IPAddresses, l.ips, net.IP.Equal), nil
}
