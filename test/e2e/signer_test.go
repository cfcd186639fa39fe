package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/externalsigner/ledgerstore"
	"github.com/credence-id/credence/test/testkit"
	corev1 "k8s.io/api/core/v1"
)

// process is a program that runs until the test ends.
type process struct {
	cmd    *exec.Cmd
	exited chan error
	log    bytes.Buffer
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program(name), args...), exited: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	must(t, p.cmd.Start())
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-p.exited; err != nil {
			t.Errorf("%s ended with %v\n%s", name, err, p.log.String())
		}
	})
	return p
}

// alive is an error that waiting does not mend if the process has ended.
func (p *process) alive() error {
	select {
	case err := <-p.exited:
		p.exited <- nil
		return fatal{fmt.Errorf("%s ended: %v\n%s", p.cmd.Path, err, p.log.String())}
	default:
		return nil
	}
}

// awaitReady waits until the process serves, and reports that it is ready.
func (p *process) awaitReady(t *testing.T, config *rest.Config) {
	t.Helper()
	client := need(rest.HTTPClientFor(config))(t)
	eventually(t, func() error {
		if err := p.alive(); err != nil {
			return err
		}
		got, err := client.Get(config.Host + "/readyz")
		if err != nil {
			return err
		}
		defer got.Body.Close()
		if got.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %d", got.StatusCode)
		}
		return nil
	})
}

// quick lets a spare of a signer sign after seconds. It signs nothing if a busy machine lets it read its keys later than the staleness.
var quick = []string{"--key-publish-period=10s", "--keys-staleness=10s", "--clock-skew=1s"}

func (p *process) rotate(t *testing.T, keys, algorithm string, more ...string) {
	t.Helper()
	args := append([]string{"keys", "rotate", "--keys-dir", keys, "--algorithm", algorithm, "--reason", "a test", "--max-age=2s"}, append(more, quick...)...)
	if out, err := exec.Command(program("credence"), args...).CombinedOutput(); err != nil {
		t.Fatalf("rotate: %v\n%s", err, out)
	}
}

// socketFolder is short: the path of a unix socket may not be long.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir := need(os.MkdirTemp("", "cs-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A stock kube-apiserver signs with our keys, and refuses none of its tokens while they rotate.
func TestPlaneSignerOfKubeAPIServer(t *testing.T) {
	withCluster(t)
	dir, sockets := t.TempDir(), socketFolder(t)
	keys, socket := filepath.Join(dir, "keys"), filepath.Join(sockets, "run", "socket")
	signer := start(t, "credence-server", append([]string{"signer", "--issuer", "https://kubernetes.default.svc.cluster.local", "--keys-dir", keys, "--socket", socket}, quick...)...)
	eventually(t, func() error {
		if err := signer.alive(); err != nil {
			return err
		}
		return errOf(os.Stat(socket))
	})
	port := need(testkit.FreePorts(portsPerPlane))(t)
	folder := filepath.Join(dir, "cluster")
	started := starting(t)
	cluster := start(t, "credence-devcluster", "--dir", folder, "--port", fmt.Sprint(port), "--apiserver-arg=--service-account-signing-endpoint="+socket)
	var config *rest.Config
	var client kubernetes.Interface
	eventually(t, func() error {
		if err := cluster.alive(); err != nil {
			return err
		}
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "admin.kubeconfig")); err != nil {
			return err
		}
		config.QPS = -1
		if client, err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
		return errOf(client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}))
	})
	started()

	load := &accountTokens{client: client, cluster: config, keys: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { load.run(ctx, t) })
	}
	eventually(t, func() error { return load.atLeast(1) })
	// Tokens of the keys are valid for an hour, so that there is no room for a third one.
	for rotation := range 2 {
		signer.rotate(t, keys, "RS256")
		eventually(t, func() error {
			if err := load.failure(); err != nil {
				return err
			}
			return load.atLeast(rotation + 2)
		})
	}
	stop()
	workers.Wait()
	expect(t, load.failure())
	published := need(client.Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").Do(t.Context()).Raw())(t)
	for id := range load.keys {
		if !strings.Contains(string(published), id) {
			t.Errorf("the cluster does not publish key %s, whose tokens have not expired: %s", id, published)
		}
	}
	if out := shared.must(t, "", "kubectl", "--kubeconfig", filepath.Join(folder, "admin.kubeconfig"), "create", "token", "default"); !load.keys[keyOf(t, strings.TrimSpace(out))] {
		t.Error("kubectl create token gives a token of an unknown key")
	}
	t.Logf("tokens of %d keys were accepted %d times, and none refused", len(load.keys), load.accepted)
}

// accountTokens has tokens of a service account issued, and shows each to the cluster, at once and again later.
type accountTokens struct {
	client  kubernetes.Interface
	cluster *rest.Config

	mu       sync.Mutex
	keys     map[string]bool
	accepted int
	refused  []string
}

func (a *accountTokens) run(ctx context.Context, t *testing.T) {
	var held []string
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		issued, err := a.client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			a.check(ctx, "", "no token was issued", err)
			continue
		}
		held = append(held, issued.Status.Token)
		for _, token := range []string{issued.Status.Token, held[len(held)/2], held[0]} {
			_, err := bearer(ctx, a.cluster, token)
			a.check(ctx, keyOf(t, token), "a token was refused", err)
		}
	}
}

func (a *accountTokens) check(ctx context.Context, key, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.refused = append(a.refused, fmt.Sprintf("%s (key %q): %v", what, key, err))
		return
	}
	a.keys[key] = true
	a.accepted++
}

func (a *accountTokens) atLeast(keys int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.keys) < keys {
		return fmt.Errorf("tokens of %d keys were seen, %d are waited for", len(a.keys), keys)
	}
	return nil
}

func (a *accountTokens) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.refused) > 0 {
		return fatal{fmt.Errorf("%d times: %s", len(a.refused), a.refused[0])}
	}
	return nil
}

func keyOf(t *testing.T, token string) string {
	header, _ := claims(t, token)
	return header.KeyID
}

// Workload identities are signed for by an external signer: the same program, in the part that a plugin of a KMS has.
func TestExternalSigner(t *testing.T) {
	inTurn(t)
	const issuer = "https://hsm.example"
	dir, sockets := t.TempDir(), socketFolder(t)
	keys, socket, public := filepath.Join(dir, "keys"), filepath.Join(sockets, "run", "socket"), filepath.Join(dir, "public")
	emptyLedger(t)
	refuseToStart(t, []string{"the external signer must be there at the first start", "no answer on the socket"},
		map[string]string{"keys-dir": "", "signer-socket": socket, "issuer": issuer})
	plugin := start(t, "credence-server", append([]string{"signer", "--issuer", issuer, "--keys-dir", keys, "--socket", socket}, quick...)...)
	eventually(t, func() error {
		if err := plugin.alive(); err != nil {
			return err
		}
		return errOf(os.Stat(socket))
	})
	port := portsOf(t)
	server := start(t, "credence-server", serverFlags(t, map[string]string{
		"secure-port": fmt.Sprint(port), "issuer": issuer, "keys-dir": "", "signer-socket": socket, "publish-dir": public,
	})...)
	config := shared.config(t)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	server.awaitReady(t, config)
	namespace := shared.namespace(t)
	for _, target := range []string{"aws", "azure"} {
		eventually(t, func() error { // what reviews requests is ready a moment later
			return do(t, config, "POST", identitiesPath(namespace), "application/json", identityJSON(target, target, "team")).is(201)
		})
	}
	var first string
	eventually(t, func() error { // the first poll of the signer takes a moment
		got := do(t, config, "POST", tokenPath(namespace, "aws"), "application/json", tokenRequest(`{}`))
		if got.Code != 201 {
			return fmt.Errorf("a token: %d %s", got.Code, got.Body)
		}
		first = decodeTokenRequest(t, got).Status.Token
		return nil
	})
	verifyWith(t, filepath.Join(public, "jwks.json"), first)
	verifyWith(t, filepath.Join(public, "jwks.json"), token(t, config, namespace, "azure", `{}`).Status.Token)

	// The keys that were there at the first start need no waiting; the next one is published, but not for a day.
	plugin.rotate(t, keys, "RS256", "--now", "--accept-refusals")
	plugin.rotate(t, keys, "RS256", "--now", "--accept-refusals")
	eventually(t, func() error {
		got := do(t, config, "POST", tokenPath(namespace, "aws"), "application/json", tokenRequest(`{}`))
		if got.Code != 503 || got.Header.Get("Retry-After") == "" || !strings.Contains(string(got.Body), "published") {
			return fmt.Errorf("a token under a key that is too young: %d %s", got.Code, got.Body)
		}
		return nil
	})
	verifyWith(t, filepath.Join(public, "jwks.json"), first)
	if stdout, stderr, code := shared.command(t, "", "kubectl", "-n", "credence-system", "delete", "configmap", "credence-signer-ledger"); code == 0 {
		t.Errorf("an administrator can delete the ledger: %s%s", stdout, stderr)
	}
	expect(t, do(t, config, "POST", ringPath+"/rotation", "application/json", commandJSON("KeyRotation", `{"algorithm":"RS256"}`)).is(409, "external signer"), "rotate the keys of an external signer")
}

// emptyLedger makes the next external signer of the shared plane the first one. Only the API server may do that.
func emptyLedger(t *testing.T) {
	t.Helper()
	if stdout, stderr, code := shared.command(t, "", "kubectl", "-n", "credence-system", "patch", "configmap", "credence-signer-ledger", "--type=merge", "-p", `{"data":{"ledger.json":"{}"}}`); code == 0 {
		t.Errorf("an administrator can change the ledger: %s%s", stdout, stderr)
	}
	client := need(kubernetes.NewForConfig(shared.as(t, "system:serviceaccount:credence-system:credence-apiserver")))(t)
	ledger := need(client.CoreV1().ConfigMaps("credence-system").Get(t.Context(), "credence-signer-ledger", metav1.GetOptions{}))(t)
	ledger.Data = nil
	need(client.CoreV1().ConfigMaps("credence-system").Update(t.Context(), ledger, metav1.UpdateOptions{}))(t)
}

// verifyWith judges a token by a key set alone.
func verifyWith(t *testing.T, file, token string) {
	t.Helper()
	content := need(os.ReadFile(file))(t)
	var set jose.JSONWebKeySet
	must(t, json.Unmarshal(content, &set))
	parsed := need(jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256}))(t)
	var claims jwt.Claims
	if err := parsed.Claims(&set, &claims); err != nil {
		t.Errorf("the published keys do not verify the token: %v\n%s", err, content)
	}
}

// The ledger of an external signer's keys is kept by compare-and-swap of a real API server.
func TestLedgerStore(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	made := 0
	externalsignertest.RunStore(t, func(t *testing.T) func() externalsigner.LedgerStore {
		made++
		name := fmt.Sprintf("ledger-%d", made)
		need(shared.client(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
		return func() externalsigner.LedgerStore {
			return ledgerstore.ConfigMap{Client: shared.client(t).CoreV1(), Namespace: namespace, Name: name}
		}
	})
}
