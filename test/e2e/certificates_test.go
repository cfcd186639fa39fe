package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

// followers are the components that are served certificates by their files, by the port that shows each, from the first of the plane.
var followers = map[string]int{"apiserver": 1, "discovery": 2, "controller": 4, "agent": 5, "webhook": 6, "binder": 8, "profiles": 10}

// The components of a plane are given the certificates of credence-server certificates, as a kubelet would mount them, while the API and the
// webhook are used without pause: no request fails, none of them is restarted, and no certificate is shown that a caBundle does not trust.
func TestPlaneCertificatesOfAnInstallation(t *testing.T) {
	first(t, ofPlane, 4)
	p := newPlane(t)
	p.install(t, deploy.Registration, deploy.Certificates)
	secrets := p.client(t).CoreV1().Secrets(installation)
	kubeconfig := p.kubeconfigOf(t, "credence-certificates")
	one, other := p.startCertificates(t, kubeconfig), p.startCertificates(t, kubeconfig)

	p.mount(t, secrets)
	before := map[string]int{}
	for name := range followers {
		before[name] = p.part(t, name).PID
		p.awaitServed(t, secrets, name, "")
	}
	p.use(t)

	t.Log("a lost certificate")
	serial := leafOf(t, secrets, "webhook").SerialNumber.String()
	must(t, secrets.Delete(t.Context(), "credence-webhook-tls", metav1.DeleteOptions{}))
	p.awaitServed(t, secrets, "webhook", serial)

	t.Log("a damaged certificate")
	serial = leafOf(t, secrets, "agent").SerialNumber.String()
	must(t, errOf(secrets.Patch(t.Context(), "credence-agent-tls", types.MergePatchType, []byte(`{"data":{"tls.key":"eA=="}}`), metav1.PatchOptions{})))
	p.awaitServed(t, secrets, "agent", serial)

	t.Log("a caBundle that was emptied")
	must(t, errOf(p.client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), "credence-templates", types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`), metav1.PatchOptions{})))
	p.awaitAuthorities(t, secrets, 1)

	t.Log("a lost authority")
	lost := authoritiesOf(t, secrets)[0]
	must(t, secrets.Delete(t.Context(), "credence-ca", metav1.DeleteOptions{}))
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), "credence-ca", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if trusted := pki.Authorities(secret.Data["ca.crt"]); len(trusted) < 2 || trusted[0].Equal(lost) || !trusted[len(trusted)-1].Equal(lost) {
			return fatal{fmt.Errorf("%d authorities are trusted after one was lost", len(trusted))}
		}
		return nil
	})
	p.awaitAuthorities(t, secrets, 1)
	for name := range followers {
		if leaf := leafOf(t, secrets, name); leaf.CheckSignatureFrom(authoritiesOf(t, secrets)[0]) != nil {
			t.Errorf("the certificate of %s is one of the lost authority", name)
		}
	}

	t.Log("the replica that leads is killed")
	lease := need(p.client(t).CoordinationV1().Leases(installation).Get(t.Context(), "credence-certificates", metav1.GetOptions{}))(t)
	rest := other
	if parts := strings.Split(*lease.Spec.HolderIdentity, "_"); parts[len(parts)-2] == strconv.Itoa(one.cmd.Process.Pid) {
		one.kill(t)
	} else {
		other.kill(t)
		rest = one
	}
	serial = leafOf(t, secrets, "binder").SerialNumber.String()
	must(t, secrets.Delete(t.Context(), "credence-binder-tls", metav1.DeleteOptions{}))
	p.awaitServed(t, secrets, "binder", serial)

	t.Log("time")
	serials := map[string]string{}
	for name := range followers {
		serials[name] = leafOf(t, secrets, name).SerialNumber.String()
	}
	for name := range followers {
		p.awaitServed(t, secrets, name, serials[name])
	}

	eventually(t, func() error { return rest.get(t, secrets, "/readyz", "ok") })
	eventually(t, func() error {
		return rest.get(t, secrets, "/metrics", `credence_certificates_expiry_timestamp_seconds{certificate="authority"}`)
	})
	eventually(t, func() error {
		events, err := p.client(t).CoreV1().Events(installation).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=CertificateMade,involvedObject.name=credence-binder-tls"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("no Event on a new certificate")
		}
		return err
	})
	for name, pid := range before {
		now := p.part(t, name).PID
		log := need(os.ReadFile(filepath.Join(p.Dir, "logs", name+".log")))(t)
		if now != pid && !bytes.Contains(log, []byte("leadership was lost")) { // which a machine that stands still for seconds has it
			t.Errorf("%s was restarted: process %d, before %d", name, now, pid)
		}
	}
}

// kubeconfigOf writes a kubeconfig of a service account of the installation, and of no other user.
func (p plane) kubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	token := need(p.client(t).CoreV1().ServiceAccounts(installation).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	admin, config := p.config(t), clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}

// certificates is a running credence-server certificates.
type certificates struct {
	cmd  *exec.Cmd
	port int
}

// startCertificates runs it with lifetimes that a test can wait for, unless further arguments have others.
func (p plane) startCertificates(t *testing.T, kubeconfig string, arguments ...string) *certificates {
	t.Helper()
	port := need(testkit.FreePorts(1))(t)
	var log bytes.Buffer
	c := &certificates{port: port, cmd: exec.CommandContext(t.Context(), program("credence-server"), append([]string{"certificates", "--kubeconfig", kubeconfig,
		"--health-port", strconv.Itoa(port), "--anonymous-metrics", "--certificate-lifetime", "2m", "--authority-lifetime", "30m", "--overlap", "20s"}, arguments...)...)}
	c.cmd.Stderr = &log
	must(t, c.cmd.Start())
	t.Cleanup(func() {
		c.kill(t)
		if t.Failed() {
			t.Logf("certificates:\n%s", log.String())
		}
		if strings.Contains(log.String(), "PRIVATE KEY") {
			t.Error("a private key is logged")
		}
	})
	return c
}

func (c *certificates) kill(t *testing.T) {
	if c.cmd.ProcessState != nil {
		return
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = c.cmd.Wait() // it was killed
}

// get reads a path of the health port, by the certificate that the process has made for itself.
func (c *certificates) get(t *testing.T, secrets corev1client.SecretInterface, path, want string) error {
	t.Helper()
	roots := x509.NewCertPool()
	for _, authority := range authoritiesOf(t, secrets) {
		roots.AddCert(authority)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "credence-certificates.credence-system.svc"}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get(fmt.Sprintf("https://127.0.0.1:%d%s", c.port, path))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(body), want) {
		err = fmt.Errorf("%s answers %s", path, body)
	}
	return err
}

// background runs do again and again until the test ends.
func background(t *testing.T, pause time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			do(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// mount keeps the Secrets of the certificates where the components of a plane have their files, as a kubelet does in volumes: links to a
// folder behind a link that is replaced in one step.
func (p plane) mount(t *testing.T, secrets corev1client.SecretInterface) {
	t.Helper()
	versions := map[string]string{}
	background(t, 100*time.Millisecond, func(ctx context.Context) {
		for name := range followers {
			secret, err := secrets.Get(ctx, "credence-"+name+"-tls", metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) || ctx.Err() != nil: // what is mounted stays
			case err != nil:
				t.Error(err)
			case versions[name] != secret.ResourceVersion:
				versions[name] = secret.ResourceVersion
				expect(t, mountSecret(filepath.Join(p.Dir, "pki", name), secret))
			}
		}
	})
}

func mountSecret(folder string, secret *corev1.Secret) error {
	payload := filepath.Join(folder, "..v"+secret.ResourceVersion)
	if err := os.Mkdir(payload, 0o755); err != nil {
		return err
	}
	old, _ := os.Readlink(filepath.Join(folder, "..data")) // none at first
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(payload, key), value, 0o600); err != nil {
			return err
		}
	}
	link := func(to, name string) error {
		if err := os.Symlink(to, filepath.Join(folder, name+".new")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(folder, name+".new"), filepath.Join(folder, name))
	}
	if err := link(filepath.Base(payload), "..data"); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(folder, old))
	}
	return errors.Join(link("..data/tls.crt", "tls.crt"), link("..data/tls.key", "tls.key"))
}

// use has the aggregated API and the webhook called, and compares what they show with what caBundle trusts, until the test ends.
func (p plane) use(t *testing.T) {
	t.Helper()
	namespace := p.namespace(t)
	p.enable(t, namespace)
	pods, identities := p.client(t).CoreV1().Pods(namespace), p.objects(t, "").Resource(v1alpha1.SchemeGroupVersion.WithResource("workloadidentities"))
	services, webhooks := p.objects(t, "").Resource(apiServices), p.client(t).AdmissionregistrationV1().MutatingWebhookConfigurations()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
	eventually(t, func() error { // the namespace's account is made
		_, err := pods.Create(t.Context(), pod, dryRun)
		return err
	})
	report := func(ctx context.Context, what string, err error) {
		if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "deadline exceeded") { // a slow answer is not a refused certificate
			t.Errorf("%s: %v", what, err)
		}
	}
	background(t, 20*time.Millisecond, func(ctx context.Context) {
		_, err := pods.Create(ctx, pod, dryRun)
		report(ctx, "create a pod", err)
	})
	background(t, 20*time.Millisecond, func(ctx context.Context) {
		_, err := identities.List(ctx, metav1.ListOptions{})
		report(ctx, "list identities", err)
	})
	background(t, 20*time.Millisecond, func(ctx context.Context) {
		report(ctx, "the API server's certificate", p.trusted(t, "apiserver", func() ([]byte, error) {
			object, err := services.Get(ctx, "v1alpha1.authentication.gardener.cloud", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return base64.StdEncoding.DecodeString(object.Object["spec"].(map[string]any)["caBundle"].(string))
		}))
		report(ctx, "the webhook's certificate", p.trusted(t, "webhook", func() ([]byte, error) {
			configuration, err := webhooks.Get(ctx, "credence-webhook", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return configuration.Webhooks[0].ClientConfig.CABundle, nil
		}))
	})
}

// shown returns the certificate that a component shows, or an error if bundle does not trust it; nil trusts any.
func (p plane) shown(t *testing.T, name string, bundle []byte) (*x509.Certificate, error) {
	config := &tls.Config{ServerName: "credence-" + name + ".credence-system.svc", InsecureSkipVerify: bundle == nil, RootCAs: x509.NewCertPool()} //nolint:gosec // to see any
	config.RootCAs.AppendCertsFromPEM(bundle)
	connection, err := tls.Dial("tcp", strings.TrimPrefix(p.onPort(t, followers[name]).Host, "https://"), config)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// trusted returns an error if the bundle does not trust the certificate that a component shows, and is the same before and after that.
func (p plane) trusted(t *testing.T, name string, bundle func() ([]byte, error)) error {
	before, err := bundle()
	if err != nil {
		return err
	}
	_, refused := p.shown(t, name, before)
	if refused == nil {
		return nil
	}
	after, err := bundle()
	if err == nil && !bytes.Equal(before, after) {
		return nil
	}
	return errors.Join(refused, err)
}

func leafOf(t *testing.T, secrets corev1client.SecretInterface, name string) *x509.Certificate {
	t.Helper()
	secret := need(secrets.Get(t.Context(), "credence-"+name+"-tls", metav1.GetOptions{}))(t)
	pair := need(tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]))(t)
	return pair.Leaf
}

func authoritiesOf(t *testing.T, secrets corev1client.SecretInterface) []*x509.Certificate {
	t.Helper()
	secret := need(secrets.Get(t.Context(), "credence-ca", metav1.GetOptions{}))(t)
	return pki.Authorities(secret.Data["ca.crt"])
}

// awaitServed waits until a component shows the certificate that is stored for it, and that is another one than before.
func (p plane) awaitServed(t *testing.T, secrets corev1client.SecretInterface, name, before string) {
	t.Helper()
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), "credence-"+name+"-tls", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			return err
		}
		shown, err := p.shown(t, name, nil)
		if err != nil {
			return err
		}
		if !shown.Equal(pair.Leaf) || shown.SerialNumber.String() == before {
			return fmt.Errorf("%s shows the certificate %s, made at %s, before it was %s", name, shown.SerialNumber, pki.Made(shown), before)
		}
		return nil
	})
}

// awaitAuthorities waits until so many authorities are trusted, in the same way everywhere.
func (p plane) awaitAuthorities(t *testing.T, secrets corev1client.SecretInterface, n int) {
	t.Helper()
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), "credence-ca", metav1.GetOptions{})
		if err != nil {
			return err
		}
		bundle := secret.Data["ca.crt"]
		if got := len(pki.Authorities(bundle)); got != n {
			return fmt.Errorf("%d authorities are trusted, want %d", got, n)
		}
		for name := range followers {
			secret, err := secrets.Get(t.Context(), "credence-"+name+"-tls", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !bytes.Equal(secret.Data["ca.crt"], bundle) {
				return fmt.Errorf("the Secret of %s has another bundle", name)
			}
		}
		configurations, err := p.client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, configuration := range configurations.Items {
			for _, webhook := range configuration.Webhooks {
				if !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
					return fmt.Errorf("%s has another bundle", webhook.Name)
				}
			}
		}
		return nil
	})
}
