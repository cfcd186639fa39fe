//go:build unix

package credential_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/cli/clitest"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/test/testkit"
)

// started is a program of this package that runs; lines are those that it writes to standard error.
type started struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	mu       sync.Mutex
	seen     map[string]chan struct{}
}

func (s *started) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err.Write(p)
	for text, found := range s.seen {
		if strings.Contains(s.err.String(), text) {
			close(found)
			delete(s.seen, text)
		}
	}
	return len(p), nil
}

// run starts credence, and waits until it writes a text to standard error.
func run(t *testing.T, until string, environment []string, args ...string) *started {
	t.Helper()
	found := make(chan struct{})
	s := &started{cmd: exec.CommandContext(t.Context(), "credence", args...), seen: map[string]chan struct{}{until: found}}
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, s
	testkit.Must(t, s.cmd.Start())
	select {
	case <-found:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		t.Fatalf("nothing like %q is written:\n%s", until, s.err.String())
	}
	return s
}

// end waits until the program has ended, and ends it after a minute, so that its exit code is another one.
func (s *started) end() {
	defer time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.cmd.Wait()
}

// A login that is interrupted or terminated leaves no half-written file and no lock, and exits with the code of the signal. A request that waits at the
// cluster is found again.
func TestInterruptedLogin(t *testing.T) {
	// Tests under nohup ignore the signal, and so would the programs they start. A signal that is caught here is not ignored there.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	issuer := oidctest.Start(t, time.Now())
	dir := t.TempDir()
	signing := clitest.NewSigningFake(filepath.Join(dir, "signing"))
	cluster := httptest.NewUnstartedServer(http.HandlerFunc(signing.ServeHTTP))
	cluster.Config.ErrorLog, cluster.TLS = clitest.DiscardLog(), &tls.Config{MinVersion: tls.VersionTLS12}
	cluster.StartTLS()
	t.Cleanup(cluster.Close)
	ca, kubeconfig := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	write := func(path, text string) {
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})))
	write(kubeconfig, fmt.Sprintf(`{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": %q}}],
		"users": [{"name": "u", "user": {"token": "x"}}], "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}`, cluster.URL, ca))

	openID := []string{"oidc", "--issuer", issuer.Issuer, "--client-id", oidctest.ClientID, "--ca-file", issuer.CAFile}
	certificate := []string{"client-certificate", "--user-name", "joe", "--kubeconfig", kubeconfig}
	for name, test := range map[string]struct {
		line  []string
		until string
		by    syscall.Signal
		code  int
		files int // besides the lock
		made  int // requests at the cluster: each folder has its own, and no more
	}{
		"a browser":              {append(openID, "--flow", "browser"), "open this address", syscall.SIGINT, 130, 1, 0},
		"a device":               {append(openID, "--flow", "device"), "enter the code", syscall.SIGTERM, 143, 1, 0},
		"a terminal that closes": {append(openID, "--flow", "device"), "enter the code", syscall.SIGHUP, 129, 1, 0},
		"approval":               {certificate, "waits for approval", syscall.SIGINT, 130, 1, 1},
		"approval, for a client": {certificate, "waits for approval", syscall.SIGTERM, 143, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := signing.Made()
			folder := filepath.Join(t.TempDir(), "kept")
			command := []string{"login"}
			if strings.Contains(name, "client") {
				command = []string{"credential"}
			}
			environment := []string{"SSH_TTY=/dev/pts/0", `KUBERNETES_EXEC_INFO={"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":true}}`}
			args := append(append(command, test.line...), "--cache-folder", folder)
			s := run(t, test.until, environment, args...)
			testkit.Must(t, s.cmd.Process.Signal(test.by))
			s.end()
			if code := s.cmd.ProcessState.ExitCode(); code != test.code || s.out.Len() > 0 || !strings.Contains(s.err.String(), "error: interrupted (") {
				t.Errorf("exit code %d, want %d; %d bytes on standard output\n%s", code, test.code, s.out.Len(), s.err.String())
			}
			kept := testkit.Need(os.ReadDir(folder))(t)
			files := 0
			for _, file := range kept {
				switch filepath.Ext(file.Name()) {
				case ".lock":
				case "":
					files++
				default:
					t.Errorf("%s is left", file.Name())
				}
			}
			if files > test.files {
				t.Errorf("%d files are kept", files)
			}
			// The lock is free: the next one comes as far, and need not wait.
			again := run(t, test.until, environment, args...)
			_ = again.cmd.Process.Signal(syscall.SIGINT)
			again.end()
			if strings.Contains(again.err.String(), "waiting for process") {
				t.Errorf("the lock is held:\n%s", again.err.String())
			}
			if made := signing.Made() - before; made != test.made {
				t.Errorf("%d requests, want %d", made, test.made)
			}
		})
	}
}
