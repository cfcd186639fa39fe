//go:build unix

package credential_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/clitest"
	"github.com/credence-id/credence/test/testkit"
)

// shortLived is a cluster that issues tokens which are valid for five seconds, and refuses, or does not answer, while the test wants that.
type shortLived struct {
	issued        atomic.Int64
	refuses, down atomic.Bool
}

func (c *shortLived) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	switch {
	case c.down.Load():
		clitest.Refuse(w, metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "later"})
	case c.refuses.Load():
		clitest.Refuse(w, metav1.Status{Code: 403, Reason: "Forbidden", Message: "no"})
	default:
		clitest.Answer(w, http.StatusCreated, v1alpha1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Status: v1alpha1.TokenRequestStatus{
				Token: fmt.Sprintf("token-%d-%s-end", c.issued.Add(1), strings.Repeat("x", 8000)), ExpirationTimestamp: metav1.Time{Time: time.Now().Add(5 * time.Second)},
			},
		})
	}
}

// keptToken is a file that credence keeps, and the cluster that its tokens come from.
type keptToken struct {
	*shortLived
	t          *testing.T
	path, line string
}

func newKeptToken(t *testing.T) *keptToken {
	k := &keptToken{shortLived: &shortLived{}, t: t, path: filepath.Join(t.TempDir(), "token")}
	cluster := httptest.NewUnstartedServer(k.shortLived)
	cluster.Config.ErrorLog, cluster.TLS = clitest.DiscardLog(), &tls.Config{MinVersion: tls.VersionTLS12}
	cluster.StartTLS()
	t.Cleanup(cluster.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Appendf(nil, `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": "x"}}], "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}`, cluster.URL, base64.StdEncoding.EncodeToString(ca))
	testkit.Must(t, os.WriteFile(kubeconfig, text, 0o600))
	k.line = "credential workload-identity app -n team --kubeconfig " + kubeconfig + " --cache-folder " + filepath.Join(t.TempDir(), "cache") + " --keep " + k.path
	return k
}

// start starts credence, and waits until it writes a text to standard error.
func (k *keptToken) start(until string, environment ...string) *started {
	k.t.Helper()
	s := run(k.t, until, append(environment, "CLOCK_RUNS=real", "KUBERNETES_EXEC_INFO="), strings.Fields(k.line)...)
	k.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

// whole returns what is in the file, and fails the test if that is not one whole token.
func (k *keptToken) whole() string {
	k.t.Helper()
	data, err := os.ReadFile(k.path)
	if err != nil {
		k.t.Fatal(err)
	}
	if text := string(data); !strings.HasPrefix(text, "token-") || !strings.HasSuffix(text, "x-end") || strings.Count(text, "token") != 1 {
		k.t.Fatalf("the file has %d bytes, %.20q…", len(data), text)
	}
	return string(data)
}

// Killed at any point, and started again, it leaves one whole token and nothing else; readers never see less.
func TestKeepIsKilled(t *testing.T) {
	k := newKeptToken(t)
	for n := range 5 {
		s := k.start("is written")
		issued := k.issued.Load()
		// The first ones are killed as soon as the next token was issued: while it is written.
		testkit.Eventually(t, "a new token", func() bool {
			k.whole()
			return n > 3 || k.issued.Load() > issued
		})
		_ = s.cmd.Process.Kill()
		s.end()
		k.whole()
	}
	s := k.start("is written")
	entries, err := os.ReadDir(filepath.Dir(k.path))
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.end()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 || s.out.Len() > 0 {
		t.Errorf("terminated: exit code %d, %d bytes on standard output\n%s", code, s.out.Len(), s.err.String())
	}
	if strings.Contains(s.err.String(), "xxxx") {
		t.Error("a token was logged")
	}
}

// A refusal and an outage leave the last token in the file. The program goes on and recovers.
func TestKeepInAnOutage(t *testing.T) {
	k := newKeptToken(t)
	manager := testkit.Need(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}))(t)
	defer func() { _ = manager.Close() }()
	notified := func(wanted string) {
		t.Helper()
		buffer := make([]byte, 4096)
		_ = manager.SetReadDeadline(time.Now().Add(time.Minute))
		for {
			n, err := manager.Read(buffer)
			if err != nil {
				t.Fatalf("the service manager waits for %q: %v", wanted, err)
			}
			if text := string(buffer[:n]); strings.HasPrefix(text, wanted) {
				return
			}
		}
	}
	k.down.Store(true)
	s := k.start("has no credential yet", "NOTIFY_SOCKET="+manager.LocalAddr().String())
	notified("STATUS=" + k.path + " has no credential yet: ")
	k.down.Store(false)
	notified("READY=1")
	k.refuses.Store(true)
	notified("STATUS=" + k.path + " has the last credential still, which expired at ")
	last := k.whole()
	k.refuses.Store(false)
	notified("READY=1")
	if k.whole() == last {
		t.Error("the file has the token of before")
	}
	second := run(t, "another process keeps this file", []string{"CLOCK_RUNS=real", "KUBERNETES_EXEC_INFO="}, strings.Fields(k.line)...)
	if second.end(); second.cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("a second one: %s", second.cmd.ProcessState)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	notified("STOPPING=1")
	if s.end(); s.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("%s\n%s", s.cmd.ProcessState, s.err.String())
	}
}

// A refusal of the first token ends it: the line is wrong, or a right is missing.
func TestKeepIsRefusedAtTheStart(t *testing.T) {
	k := newKeptToken(t)
	k.refuses.Store(true)
	s := k.start("refused by the API server")
	if s.end(); s.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%s\n%s", s.cmd.ProcessState, s.err.String())
	}
	if _, err := os.Stat(k.path); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
}
