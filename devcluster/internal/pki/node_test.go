package pki

import (
	"net"
	"testing"
	"time"
)

func TestEnsureNodeKeepsWhatIsGood(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	files, err := Ensure(dir, net.IPv4(10, 96, 0, 1), now)
	if err != nil {
		t.Fatal(err)
	}
	first, err := EnsureNode(dir, "127.0.0.1", "192.0.2.1", now)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := readCertificate(files.Authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	user, err := readCertificate(first.KubeletUser.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if got := user.Subject.String(); got != "CN=system:node:127.0.0.1,O=system:nodes" {
		t.Errorf("the kubelet is %q", got)
	}
	serving, err := readCertificate(first.Kubelet.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := serving.CheckSignatureFrom(authority); err != nil || serving.VerifyHostname("192.0.2.1") != nil {
		t.Errorf("the kubelet's serving certificate: %v, for %v", err, serving.IPAddresses)
	}
	if _, err := EnsureNode(dir, "127.0.0.1", "192.0.2.1", now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if again, err := readCertificate(first.KubeletUser.Cert); err != nil || again.SerialNumber.Cmp(user.SerialNumber) != 0 {
		t.Errorf("a certificate that was good has been replaced (%v)", err)
	}
}
