package kubeconfig_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

const first = `
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: one
  cluster: {server: "https://one.example", certificate-authority: ca.crt}
- name: plain
  cluster: {server: "http://plain.example"}
- name: named
  cluster: {server: "https://me:geheim@plain.example"}
- name: nourl
  cluster: {server: "localhost:6443"}
contexts:
- name: one
  context: {cluster: one, user: jane, namespace: team}
- name: two
  context: {cluster: two, user: jane}
- name: plain
  context: {cluster: plain, user: jane}
- name: named
  context: {cluster: named, user: jane}
- name: nourl
  context: {cluster: nourl, user: jane}
- name: nowhere
  context: {cluster: gone, user: jane}
- name: without
  context: {cluster: one, user: gone}
users:
- name: jane
  user: {token: geheim}
`

const second = `
current-context: two
clusters:
- name: one
  cluster: {server: "https://other.example"}
- name: two
  cluster: {server: "https://two.example:8443", certificate-authority-data: Y2E=, tls-server-name: two, proxy-url: "http://me:geheim@proxy.example"}
contexts:
- name: one
  context: {cluster: two, user: joe}
- name: three
  context: {cluster: two, user: joe, namespace: third}
users:
- name: joe
  user: {username: joe, password: geheim}
`

func put(t *testing.T, path, text string) string {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	write(t, path, text)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// The stored credential is found by this reading, the request follows client-go's: both must be the same.
func TestReadsAsClientGoDoes(t *testing.T) {
	dir := t.TempDir()
	a, b := put(t, filepath.Join(dir, "a", "config"), first), put(t, filepath.Join(dir, "b", "config"), second)
	put(t, filepath.Join(dir, "a", "ca.crt"), "read for its name only")
	missing := filepath.Join(dir, "missing")
	for _, files := range [][]string{{a}, {b}, {a, b}, {b, a}, {missing, b}} {
		for _, context := range []string{"", "one", "two", "three"} {
			t.Run(fmt.Sprint(files, context), func(t *testing.T) {
				list := strings.Join(files, string(filepath.ListSeparator))
				got, err := kubeconfig.Choice{Context: context, Environment: environment("KUBECONFIG", list)}.Read()
				loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{Precedence: files}, &clientcmd.ConfigOverrides{CurrentContext: context})
				want, wantErr := loader.ClientConfig()
				if (err == nil) != (wantErr == nil) {
					t.Fatalf("got %v, client-go %v", err, wantErr)
				}
				if err != nil {
					return
				}
				raw, err := loader.RawConfig()
				testkit.Must(t, err)
				namespace, _, err := loader.Namespace()
				testkit.Must(t, err)
				if got.Server != want.Host || got.Namespace != namespace || got.User != raw.Contexts[got.Context].AuthInfo {
					t.Errorf("got %s, %s, %s; client-go %s, %s, %s", got.Server, got.Namespace, got.User, want.Host, namespace, raw.Contexts[got.Context].AuthInfo)
				}
			})
		}
	}
}

func TestKeyHoldsWhatDecides(t *testing.T) {
	dir := t.TempDir()
	a, b := put(t, filepath.Join(dir, "a"), first), put(t, filepath.Join(dir, "b"), second)
	one, err := kubeconfig.Choice{Path: a, Environment: environment("KUBECONFIG", b)}.Read()
	testkit.Must(t, err)
	if diff := cmp.Diff(map[string]string{"server": "https://one.example", "user": "jane", "ca": filepath.Join(dir, "ca.crt")}, one.Key()); diff != "" {
		t.Error(diff)
	}
	three, err := kubeconfig.Choice{Path: b, Context: "three", Environment: environment()}.Read()
	testkit.Must(t, err)
	want := map[string]string{
		"server": "https://two.example:8443", "user": "joe", "tlsServerName": "two", "proxy": "http://me:xxxxx@proxy.example",
	}
	got := three.Key()
	if !strings.HasPrefix(got["ca"], "sha256:") {
		t.Errorf("ca is %q", got["ca"])
	}
	want["ca"] = got["ca"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	other, err := kubeconfig.Choice{Path: put(t, filepath.Join(dir, "c"), strings.ReplaceAll(second, "Y2E=", "Y2I=")), Context: "three", Environment: environment()}.Read()
	if err != nil || other.Key()["ca"] == got["ca"] {
		t.Errorf("another authority has the same key, %v", err)
	}
}

func TestPod(t *testing.T) {
	folder := t.TempDir()
	in := []string{"KUBERNETES_SERVICE_HOST", "fd00::1", "KUBERNETES_SERVICE_PORT", "443"}
	choice := kubeconfig.Choice{Environment: environment(in...), Home: t.TempDir(), PodFolder: folder}
	if _, err := choice.Read(); err == nil {
		t.Error("a pod without a token has been used")
	}
	put(t, filepath.Join(folder, "token"), "geheim")
	put(t, filepath.Join(folder, "namespace"), "team\n")
	got, err := choice.Read()
	if err != nil || got.Server != "https://[fd00::1]:443" || got.Namespace != "team" || got.Pod != folder {
		t.Errorf("got %+v, %v", got, err)
	}
	choice.Environment = environment(append(in, kubeconfig.Guard, "1")...)
	if _, err := choice.Read(); !errors.Is(err, kubeconfig.ErrLeadsBack) {
		t.Errorf("in a pod, within: %v", err)
	}
	choice.Environment = environment()
	if _, err := choice.Read(); err == nil {
		t.Error("a token without a cluster has been used")
	}
	choice.Environment = environment(in...)
	put(t, filepath.Join(choice.Home, ".kube", "config"), first)
	if got, err := choice.Read(); err != nil || got.Pod != "" || got.User != "jane" {
		t.Errorf("with a kubeconfig: got %+v, %v", got, err)
	}
}

func TestWhatIsWrongWithAKubeconfig(t *testing.T) {
	dir := t.TempDir()
	good := put(t, filepath.Join(dir, "good"), first)
	cases := map[string]struct {
		choice kubeconfig.Choice
		want   string
	}{
		"missing":         {kubeconfig.Choice{Path: filepath.Join(dir, "missing")}, "missing"},
		"a folder":        {kubeconfig.Choice{Path: dir}, "not a regular file"},
		"not YAML":        {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "bad"), "users:\n- name: a\n  user: {token: geheim: x}\n")}, "not YAML"},
		"another type":    {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "type"), "users: geheim")}, "at line 1"},
		"empty":           {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "empty"), "")}, "no current context"},
		"no context":      {kubeconfig.Choice{Path: good, Context: "x"}, `no context "x"`},
		"no cluster":      {kubeconfig.Choice{Path: good, Context: "nowhere"}, `cluster "gone"`},
		"no user":         {kubeconfig.Choice{Path: good, Context: "without"}, `user "gone"`},
		"not https":       {kubeconfig.Choice{Path: good, Context: "plain"}, "https"},
		"not a URL":       {kubeconfig.Choice{Path: good, Context: "nourl"}, "not a URL"},
		"a password":      {kubeconfig.Choice{Path: good, Context: "named"}, "user name in it"},
		"proxy, no URL":   {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "proxy1"), proxied("me:geheim@proxy:3128")), Context: "c"}, "invalid proxy-url"},
		"proxy, a port":   {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "proxy2"), proxied("http://me:geheim@proxy:3128x")), Context: "c"}, "must look like"},
		"proxy, a file":   {kubeconfig.Choice{Path: put(t, filepath.Join(dir, "proxy3"), proxied("file://me:geheim@proxy")), Context: "c"}, "must look like"},
		"nothing":         {kubeconfig.Choice{}, "no kubeconfig"},
		"context of none": {kubeconfig.Choice{Context: "x"}, `no context "x"`},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			c.choice.Environment = environment()
			_, err := c.choice.Read()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if what == "missing" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
		})
	}
}

func proxied(proxy string) string {
	return `{"clusters": [{"name": "c", "cluster": {"server": "https://c.example", "proxy-url": "` + proxy + `"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}`
}
