package kubeconfig_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

// Whatever stands in a kubeconfig, it is refused, without a word of it where it cannot be read, or it leads to a server of https, and the same text
// leads there each time.
func FuzzRead(f *testing.F) {
	const secret = "hunter2hunter2"
	for _, text := range []string{
		"", "null", "[]", "users: {" + secret, "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]",
		`{"current-context":"a","clusters":[{"name":"c","cluster":{"server":"https://c:1","certificate-authority":"ca"}}],"users":[{"name":"u","user":{"token":"` +
			secret + `"}}],"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}]}`,
		"current-context: a\nclusters:\n- cluster:\n    certificate-authority-data: " + strings.Repeat("QUFB", 30) +
			"\n    server: https://[::1]:6443\n    proxy-url: http://a:" + secret + "@p\n  name: c\nusers:\n- name: u\n  user:\n    token: " + strings.Repeat(secret, 9) +
			"\n    exec: {command: aws, args: [x]}\ncontexts:\n- context: {cluster: c, user: u}\n  name: a\n",
		"current-context: &a a\nclusters: &c [{name: c, cluster: {server: http://c}}]\nusers: *c\ncontexts: [{name: *a, context: {cluster: c, user: c}}]",
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text []byte) {
		testkit.Must(t, os.WriteFile(path, text, 0o600))
		choice := kubeconfig.Choice{Path: path, Environment: func(string) string { return "" }}
		access, err := choice.Read()
		if err != nil {
			if strings.Contains(err.Error(), "not YAML") && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
			return
		}
		server, err := url.Parse(access.Server)
		if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
			t.Errorf("server %q", access.Server)
		}
		key := access.Key()
		if strings.Contains(key["proxy"], ":"+secret+"@") {
			t.Errorf("the key shows a password: %q", key["proxy"])
		}
		if again, err := choice.Read(); err != nil || len(again.Key()) != len(key) {
			t.Errorf("read again: %v, %v", again.Key(), err)
		}
	})
}
