package discovery

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// output is what a command writes, for readers that do not wait for its end.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func TestCommandRuns(t *testing.T) {
	r := &running{authority: newAuthority(t)}
	tlsDir, folder := t.TempDir(), t.TempDir()
	r.authority.issue(t, tlsDir, 2)
	documents := newDocuments(t)
	putDocuments(t, folder, documents)

	var stdout, stderr output
	command := NewCommand()
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SetArgs([]string{"--issuer", string(testIssuer), "--documents-dir", folder, "--port", "0",
		"--tls-cert-file", filepath.Join(tlsDir, "tls.crt"), "--tls-private-key-file", filepath.Join(tlsDir, "tls.key")})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- command.ExecuteContext(ctx) }()

	address := regexp.MustCompile(`msg=listening server=documents address=(127\.0\.0\.1:\d+)`)
	testkit.Eventually(t, "it logs where it listens", func() bool { return address.MatchString(stderr.String()) })
	r.url = "https://" + address.FindStringSubmatch(stderr.String())[1]
	testkit.Eventually(t, "documents are served", r.serves(t, documents))
	cancel()
	must(t, <-done)

	if stdout.String() != "" || strings.Contains(stderr.String(), "server=health") || strings.Contains(stderr.String(), "PRIVATE") {
		t.Errorf("unexpected output:\n%s%s", stdout.String(), stderr.String())
	}
	if !strings.Contains(stderr.String(), string(documents.KeyIDs()[0])) {
		t.Errorf("the log does not name the published key:\n%s", stderr.String())
	}
}

func TestCommandRefuses(t *testing.T) {
	tlsDir, open := t.TempDir(), t.TempDir()
	authority := newAuthority(t)
	authority.issue(t, tlsDir, 2)
	authority.issue(t, open, 3)
	must(t, os.Chmod(filepath.Join(open, "tls.key"), 0o640))
	busy := testkit.Listen(t)
	defer func() { _ = busy.Close() }()
	_, busyPort, err := net.SplitHostPort(busy.Addr().String())
	must(t, err)

	good := map[string]string{
		"--issuer": string(testIssuer), "--documents-dir": t.TempDir(), "--port": "0",
		"--tls-cert-file": filepath.Join(tlsDir, "tls.crt"), "--tls-private-key-file": filepath.Join(tlsDir, "tls.key"),
	}
	for name, test := range map[string]struct {
		change map[string]string // an empty value removes the flag
		want   []string
	}{
		"no issuer":                {map[string]string{"--issuer": ""}, []string{"--issuer is missing"}},
		"issuer of plain http":     {map[string]string{"--issuer": "http://example.com"}, []string{"--issuer", "must start with https://"}},
		"issuer with a query":      {map[string]string{"--issuer": "https://example.com?a=b"}, []string{"--issuer", "query"}},
		"issuer with a fragment":   {map[string]string{"--issuer": "https://example.com#a"}, []string{"--issuer", "fragment"}},
		"issuer with userinfo":     {map[string]string{"--issuer": "https://a:b@example.com"}, []string{"--issuer", "userinfo"}},
		"issuer with a slash":      {map[string]string{"--issuer": "https://example.com/"}, []string{"--issuer", "trailing slash"}},
		"no source":                {map[string]string{"--documents-dir": ""}, []string{"either --documents-dir or --documents-configmap"}},
		"two sources":              {map[string]string{"--documents-configmap": "a/b"}, []string{"--documents-dir and --documents-configmap exclude each other"}},
		"kubeconfig for a folder":  {map[string]string{"--kubeconfig": "x"}, []string{"--kubeconfig needs --documents-configmap"}},
		"cache for a folder":       {map[string]string{"--documents-cache": "x"}, []string{"--documents-cache needs --documents-configmap"}},
		"ConfigMap without a name": {map[string]string{"--documents-dir": "", "--documents-configmap": "a"}, []string{"--documents-configmap", "NAMESPACE/NAME"}},
		"ConfigMap with three":     {map[string]string{"--documents-dir": "", "--documents-configmap": "a/b/c"}, []string{"--documents-configmap", "NAMESPACE/NAME"}},
		"missing kubeconfig":       {map[string]string{"--documents-dir": "", "--documents-configmap": "a/b", "--kubeconfig": "/nowhere"}, []string{"--kubeconfig /nowhere"}},
		"no kubeconfig and no pod": {map[string]string{"--documents-dir": "", "--documents-configmap": "a/b"}, []string{"--kubeconfig is missing"}},
		"no certificate":           {map[string]string{"--tls-cert-file": ""}, []string{"--tls-cert-file is missing"}},
		"no private key":           {map[string]string{"--tls-private-key-file": ""}, []string{"--tls-private-key-file is missing"}},
		"missing certificate":      {map[string]string{"--tls-cert-file": "/nowhere"}, []string{"--tls-cert-file", "/nowhere"}},
		"unmatched certificate":    {map[string]string{"--tls-cert-file": filepath.Join(open, "tls.crt")}, []string{"--tls-cert-file", filepath.Join(open, "tls.crt")}},
		"a key that others can read": {map[string]string{"--tls-cert-file": filepath.Join(open, "tls.crt"), "--tls-private-key-file": filepath.Join(open, "tls.key")},
			[]string{"--tls-private-key-file", filepath.Join(open, "tls.key"), "mode 0640", "chmod 600"}},
		"bind address is a name":    {map[string]string{"--bind-address": "localhost"}, []string{"--bind-address"}},
		"port too large":            {map[string]string{"--port": "65536"}, []string{"--port 65536"}},
		"busy port":                 {map[string]string{"--port": busyPort}, []string{"--port " + busyPort, "in use"}},
		"busy health port":          {map[string]string{"--health-port": busyPort}, []string{"--health-port " + busyPort, "in use"}},
		"health port too large":     {map[string]string{"--health-port": "-1"}, []string{"--health-port -1"}},
		"one port for both":         {map[string]string{"--port": "1", "--health-port": "1"}, []string{"--health-port 1 is the same as --port"}},
		"ConfigMap out of its path": {map[string]string{"--documents-dir": "", "--documents-configmap": "../a"}, []string{"--documents-configmap", "NAMESPACE/NAME"}},
		"max-age zero":              {map[string]string{"--max-age": "0"}, []string{"--max-age 0s"}},
		"max-age negative":          {map[string]string{"--max-age": "-1s"}, []string{"--max-age"}},
		"max-age too long":          {map[string]string{"--max-age": "25h"}, []string{"--max-age 25h0m0s", "24h"}},
		"max-age with a fraction":   {map[string]string{"--max-age": "1500ms"}, []string{"--max-age 1.5s"}},
		"unknown log level":         {map[string]string{"--log-level": "loud"}, []string{"--log-level"}},
		"an argument without flag":  {map[string]string{"x": "y"}, []string{"unknown command"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			flags := map[string]string{}
			for _, set := range []map[string]string{good, test.change} {
				for flag, value := range set {
					flags[flag] = value
				}
			}
			var args []string
			for flag, value := range flags {
				if value != "" {
					args = append(args, flag, value)
				}
			}
			// A refusal comes before the context matters; without one, the command would end at once without error.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var printed output
			command := NewCommand()
			command.SetOut(&printed)
			command.SetErr(&printed)
			command.SetArgs(args)
			err := command.ExecuteContext(ctx)
			if err == nil {
				t.Fatal("it ran")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not have %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(printed.String(), "Usage:") {
				t.Errorf("the error is not one line:\n%v\n%s", err, printed.String())
			}
		})
	}
}

// FuzzConfigMapName splits any value of --documents-configmap.
func FuzzConfigMapName(f *testing.F) {
	f.Add("a/b")
	f.Add("/")
	f.Add("a/b/c")
	f.Fuzz(func(t *testing.T, value string) {
		namespace, name, err := splitName(value)
		if err == nil && (namespace == "" || strings.Contains(name, "/") || namespace+"/"+name != value) {
			t.Errorf("%q is split into %q and %q", value, namespace, name)
		}
	})
}
