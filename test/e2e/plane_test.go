package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// portsPerPlane is how many consecutive ports one plane may use.
const portsPerPlane = 11

// plane is a running identity plane, as `credence up` describes it.
type plane struct {
	Dir        string      `json:"-"`
	Kubeconfig string      `json:"kubeconfig"`
	CAFile     string      `json:"caFile"`
	Issuer     string      `json:"issuer"`
	JWKS       string      `json:"jwks"`
	APIServer  string      `json:"apiServer"`
	Components []component `json:"components"`
}

// component is one process of a plane.
type component struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	LogFile string `json:"logFile"`
}

// shared is the plane of all tests that do not stop or break one; second, which is started when a test needs it, that of tests which have one for
// themselves.
var (
	shared plane
	second started
)

func TestMain(m *testing.M) {
	interceptPod()
	klog.SetLogger(logr.Discard()) // what watches of this process print hides why a test failed
	exectest.Intercept()           // in a process that is to be a provider of credentials, this test binary is one
	if err := sideBySide(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var stop func()
	var err error
	if shared, stop, err = sharedPlane(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer stop()
	defer second.stop()
	return m.Run()
}

// started is a plane that is started once at most.
type started struct {
	once  sync.Once
	plane plane
	end   func()
	err   error
}

func (s *started) start() (plane, error) {
	s.once.Do(func() { s.plane, s.end, s.err = startPlane() })
	return s.plane, s.err
}

func (s *started) stop() {
	if s.end != nil {
		s.end()
	}
}

// sharedPlane uses a plane that runs already where CREDENCE_E2E_DIR names its folder, and starts one otherwise.
func sharedPlane() (plane, func(), error) {
	if dir := os.Getenv("CREDENCE_E2E_DIR"); dir != "" {
		p, err := readPlane(dir)
		return p, func() {}, err
	}
	return startPlane()
}

// startPlane starts a plane, for more than one test.
func startPlane() (plane, func(), error) {
	dir, err := os.MkdirTemp("", "credence-e2e-")
	if err != nil {
		return plane{}, nil, err
	}
	port, err := testkit.FreePorts(portsPerPlane)
	if err != nil {
		return plane{}, nil, err
	}
	out, err := exec.Command(program("credence"), "up", "--dir", dir, "--port", fmt.Sprint(port), "--detach").CombinedOutput()
	stop := func() {
		if out, err := exec.Command(program("credence"), "down", "--dir", dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: down: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		stop()
		return plane{}, func() {}, fmt.Errorf("credence up: %w\n%s", err, out)
	}
	p, err := readPlane(dir)
	return p, stop, err
}

// newPlane starts a plane of the test's own, with further arguments of up.
func newPlane(t *testing.T, args ...string) plane {
	t.Helper()
	dir := t.TempDir()
	port := need(testkit.FreePorts(portsPerPlane))(t)
	t.Cleanup(func() {
		if out, err := exec.Command(program("credence"), "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	up(t, append([]string{"--dir", dir, "--port", fmt.Sprint(port)}, args...)...)
	p := need(readPlane(dir))(t)
	return p
}

func readPlane(dir string) (plane, error) {
	content, err := os.ReadFile(filepath.Join(dir, "endpoints.json"))
	if err != nil {
		return plane{}, err
	}
	p := plane{Dir: dir}
	return p, json.Unmarshal(content, &p)
}

// minor is that of the plane's Kubernetes 1.
func (p plane) minor(t *testing.T) int {
	t.Helper()
	return need(p.answeringMinor(t))(t)
}

func (p plane) answeringMinor(t *testing.T) (int, error) {
	answer, err := p.client(t).Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	if err != nil {
		return 0, err
	}
	return minors.Of(answer)
}

// program returns the path of a program of make build.
func program(name string) string { return controlplane.Program(name) }

func (p plane) config(t *testing.T) *rest.Config {
	t.Helper()
	config := need(clientcmd.BuildConfigFromFlags("", p.Kubeconfig))(t)
	config.QPS, config.Burst = 1000, 1000
	return config
}

func (p plane) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	client := need(kubernetes.NewForConfig(p.config(t)))(t)
	return client
}

// as returns the plane's configuration for another user.
func (p plane) as(t *testing.T, user string, groups ...string) *rest.Config {
	t.Helper()
	config := p.config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// approveCommand is how a person approves a request for a certificate, in what a program prints.
var approveCommand = regexp.MustCompile(`kubectl certificate approve (credence-[0-9a-f]+)`)

// takenFor is whom the API server takes a caller for.
func takenFor(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	client := need(kubernetes.NewForConfig(config))(t)
	review := need(client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	return review.Status.UserInfo
}

// namespace makes a namespace of the test's own, and returns when pods can be created in it: its service account is made a moment later.
func (p plane) namespace(t *testing.T) string {
	t.Helper()
	core := p.client(t).CoreV1()
	created := need(core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		expect(t, p.client(t).CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), created.Name, metav1.DeleteOptions{}), "delete namespace")
	})
	eventually(t, func() error {
		_, err := core.ServiceAccounts(created.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return created.Name
}

// response is what an HTTP request got.
type response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// do sends a request as the user of a configuration, byte for byte.
func do(t *testing.T, config *rest.Config, method, path, contentType, body string) response {
	t.Helper()
	client := need(rest.HTTPClientFor(config))(t)
	request := need(http.NewRequestWithContext(t.Context(), method, config.Host+path, strings.NewReader(body)))(t)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	got := need(client.Do(request))(t)
	defer got.Body.Close()
	content := need(io.ReadAll(got.Body))(t)
	return response{Code: got.StatusCode, Header: got.Header, Body: content}
}

// command runs a program of the build with the plane's kubeconfig.
func (p plane) command(t *testing.T, stdin, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	// Also in cleanups, when the test's own context has ended.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program(name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig, "PATH="+filepath.Dir(program("credence"))+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs a program that has to succeed, and returns what it printed.
func (p plane) must(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	stdout, stderr, code := p.command(t, stdin, name, args...)
	if code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s%s", name, strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// fatal is a complaint that waiting does not mend.
type fatal struct{ error }

// Final is for testkit.Wait.
func (fatal) Final() {}

// eventually waits until a condition holds; it gives up after what no machine needs and reports the condition's last complaint.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	testkit.Wait(t, func(context.Context) error { return condition() })
}

// waitFor is eventually with another limit.
func waitFor(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	testkit.WaitFor(t, limit, func(context.Context) error { return condition() })
}
