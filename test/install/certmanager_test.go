package install

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/credence-id/credence/test/controlplane"
)

// issuers are an authority of cert-manager's, in credence-ca as that of Credence is, and the Issuer that signs with it.
const issuers = `{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: self, namespace: credence-system}, spec: {selfSigned: {}}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: ca, namespace: credence-system},
  spec: {isCA: true, commonName: ca, secretName: credence-ca, privateKey: {algorithm: ECDSA}, issuerRef: {name: self, kind: Issuer}}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: ca, namespace: credence-system}, spec: {ca: {secretName: credence-ca}}}
`

// certificatesOfCertManager installs with the certificates of cert-manager, and replaces each, and their authority, while pods run. The API goes with
// its namespace, as it does with certificates of Credence.
func (p *partial) certificatesOfCertManager(t *testing.T, i *installation) {
	p.certManager(t)
	p.install(t, "issuer="+issuer, "certificates.source=cert-manager", "certificates.issuerRef.name=ca")
	p.runs(t, "agent", "apiserver", "binder", "certificates", "controller", "discovery", "profiles", "webhook")
	available(t, p.ControlPlane)
	p.helm(t, "test", "credence")
	if _, err := makeIdentity(t.Context(), i.identities, "app"); err != nil && !apierrors.IsAlreadyExists(err) { // an installation before has left it
		t.Fatal(err)
	}
	i.podHasItsIdentity(t)
	authority := p.replaceIssuer(t)
	i.replaceCertificates(t)
	p.trusted(t, authority)
	available(t, p.ControlPlane)
	p.helm(t, "test", "credence")
	p.forgetKeys(t)
	worksElsewhere(t, p.client)
}

// replaceIssuer has cert-manager make another authority, and returns its certificate.
func (p *partial) replaceIssuer(t *testing.T) (authority []byte) {
	t.Helper()
	secrets := p.client.CoreV1().Secrets(system)
	before, err := secrets.Get(t.Context(), "credence-ca", metav1.GetOptions{})
	if err == nil {
		err = secrets.Delete(t.Context(), "credence-ca", metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		found, err := secrets.Get(ctx, "credence-ca", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if authority = found.Data["tls.crt"]; len(authority) == 0 || bytes.Equal(authority, before.Data["tls.crt"]) {
			return fmt.Errorf("the authority is as before, or missing")
		}
		return nil
	})
	return authority
}

// trusted waits until the cluster trusts an authority to sign for the API, and no other.
func (p *partial) trusted(t *testing.T, authority []byte) {
	t.Helper()
	for _, name := range []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"} {
		eventually(t, func(ctx context.Context) error {
			found, err := p.objects.Resource(apiServices).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if bundle, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle"); bundle != base64.StdEncoding.EncodeToString(authority) {
				return fmt.Errorf("%s trusts %s", name, bundle)
			}
			return nil
		})
	}
}

// certManager runs the controllers of cert-manager as an admin, with an Issuer of the namespace of the release.
func (p *partial) certManager(t *testing.T) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir = "certmanager"
	module, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(stdin string, arguments ...string) error {
		command := exec.CommandContext(t.Context(), controlplane.Program("kubectl"), append([]string{"--kubeconfig", p.kubeconfig}, arguments...)...)
		command.Stdin = strings.NewReader(stdin)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", arguments[0], err, out)
		}
		return nil
	}
	definitions := filepath.Join(strings.TrimSpace(string(module)), "deploy", "crds")
	if err := kubectl("", "apply", "--server-side", "-f", definitions); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(t.TempDir(), "certmanager.log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(controlplane.Program("certmanager"), p.kubeconfig)
	command.Stdout, command.Stderr = output, output
	eventually(t, func(context.Context) error { return kubectl(issuers, "apply", "-f", "-") })
	if err := command.Start(); err != nil {
		t.Fatalf("%v; make test-all builds it: cd test/install/certmanager && go build -o ../../../bin/ .", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it has nothing to end in order
		_ = command.Wait()
		if text, err := os.ReadFile(output.Name()); err == nil && t.Failed() {
			t.Logf("cert-manager:\n%s", text)
		}
	})
	ready := dynamic.NewForConfigOrDie(p.Admin).Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}).Namespace(system)
	eventually(t, func(ctx context.Context) error {
		found, err := ready.Get(ctx, "ca", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(found.Object["status"]), "status:True") {
			err = fmt.Errorf("the Issuer is not ready: %v", found.Object["status"])
		}
		return err
	})
}
