package provider

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

func TestLinesThatAreNone(t *testing.T) {
	for _, line := range []string{
		"", "credential", "nothing", "--help", "file --help", "file --path", "file --path x y", "file --unknown x", "file --kubeconfig x", "oidc x",
		"in-order --path x -- file -- file", "in-order --kubeconfig x -- file --path x -- file --path y",
		"workload-identity a b", "workload-identity a --token x", "status", "credential credential file",
	} {
		if _, err := ParseLine(strings.Fields(line)); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

// Lines within a line: each is named by its number where it cannot be used.
func TestLinesInOrder(t *testing.T) {
	for line, want := range map[string]string{
		"in-order":                                                       "source 1: no source is given",
		"in-order -- file --path /x":                                     "wanted are two sources at least",
		"in-order -- file --path /x --":                                  "source 2: no source is given",
		"in-order -- -- file --path /x":                                  "source 1: no source is given",
		"in-order -- file --path /x -- nothing":                          `source 2: unknown source "nothing"`,
		"in-order -- file --path /x -- file":                             "source 2 (file): --path is missing",
		"in-order -- file --path /x -- file -x":                          "source 2: unknown shorthand flag: 'x' in -x",
		"in-order -- file --path x -- oidc":                              "source 1 (file): --path x is not an absolute path",
		"in-order -- in-order -- file --path /x":                         "source 1: in-order is not a source of in-order",
		"in-order -- file --path /x -- file --path /x":                   "sources 1 and 2 are the same",
		"in-order -- file --path /x -- file --path /y --cache-folder /z": "source 2: --cache-folder is for all sources",
	} {
		parsed, err := ParseLine(strings.Fields(line))
		if err == nil {
			_, err = parsed.Choose(Here(time.Now), credential.ExecInfo{FromClient: true})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	line := testkit.Need(ParseLine(strings.Fields("in-order --cache-folder c -- file --path x -- workload-identity app -n n --kubeconfig k")))(t)

	want := []string{
		"in-order", "--cache-folder=" + here("c"), "--", "file", "--path=" + here("x"), "--", "workload-identity", "app", "--kubeconfig=" + here("k"), "--namespace=n",
	}
	if got := line.Words(); !slices.Equal(got, want) {
		t.Errorf("words %q, want %q", got, want)
	}
}

// A client that waits for another's login waits longer than a person may take.
func TestOthersWaitLonger(t *testing.T) {
	place := Here(time.Now)
	place.Environment = func(string) string { return "" }
	for _, timeout := range []string{"1m", "10m", "2h"} {
		line := testkit.Need(ParseLine([]string{"oidc", "--issuer", "https://i.example.com", "--client-id", "c", "--login-timeout", timeout}))(t)
		chosen := testkit.Need(line.Choose(place, credential.ExecInfo{}))(t)
		if d, _ := time.ParseDuration(timeout); chosen.LockTimeout <= d {
			t.Errorf("login %s, others wait %s", timeout, chosen.LockTimeout)
		}
	}
}

func TestPathsOfClientsAreAbsolute(t *testing.T) {
	for _, line := range []string{
		"file --path x", "token-exchange --endpoint https://e --subject-token-file x", "token-exchange --endpoint https://e --subject-token-file /x --ca-file x",
		"token-exchange --endpoint https://e --subject-token-file /x --authentication basic --client-id c --client-secret-file x", "oidc --issuer https://i.example.com --client-id c --ca-file x",
		"oidc --issuer https://i.example.com --client-id c --client-secret-file x",
	} {
		parsed := testkit.Need(ParseLine(strings.Fields(line)))(t)
		if _, err := parsed.Choose(Here(time.Now), credential.ExecInfo{FromClient: true}); err == nil || !strings.Contains(err.Error(), "not an absolute path") {
			t.Errorf("%s: %v", line, err)
		}
		if _, err := parsed.Choose(Here(time.Now), credential.ExecInfo{}); err != nil {
			t.Errorf("%s: of a person: %v", line, err)
		}
	}
}

// The program that this one becomes is never found where the client happens to be, nor is it this one itself.
func TestProgramThatIsFound(t *testing.T) {
	folder := t.TempDir()
	make := func(path string, mode os.FileMode) string {
		path = filepath.Join(folder, path)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, nil, mode))
		return path
	}
	if filepath.Separator != '/' {
		t.Skip("needs names and modes of Unix")
	}
	self := make("bin/credence-credential", 0o755)
	here := make("cwd/credence", 0o755)
	make("data/credence", 0o644)
	inPath := make("path/credence", 0o755)
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, "folder/credence"), 0o755))
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, "loop"), 0o755))
	testkit.Must(t, os.Symlink(self, filepath.Join(folder, "loop/credence")))
	t.Chdir(filepath.Dir(here))
	in := func(names ...string) (folders []string) {
		for _, name := range names {
			folders = append(folders, filepath.Join(folder, name))
		}
		return folders
	}
	relative := []string{"", ".", "../cwd"}
	if got, err := findIn(append(relative, in("bin", "data", "folder", "loop")...), self); err == nil {
		t.Errorf("found %s", got)
	}
	if got, err := findIn(append(relative, in("bin", "data", "folder", "loop", "path")...), self); err != nil || got != inPath {
		t.Errorf("found %s, %v", got, err)
	}
	beside := make("bin/credence", 0o755)
	if got, err := findIn(in("bin", "path"), self); err != nil || got != beside {
		t.Errorf("found %s, %v", got, err)
	}
}

// An invalid line is refused before anything is looked up or kept: a password in an address would be kept with the failure, and shown.
func TestExchangesThatAreRefused(t *testing.T) {
	for _, more := range []string{"--endpoint https://u:geheim@e", "--endpoint http://e.example.com", "--endpoint https://e --authentication x"} {
		parsed := testkit.Need(ParseLine(strings.Fields("token-exchange --subject-token-file /x " + more)))(t)
		if _, err := parsed.Choose(Here(time.Now), credential.ExecInfo{}); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", more, err)
		}
	}
}

// A cluster may set what is only a default here, and nothing that the flags set otherwise.
func TestFlagsAndTheConfigurationOfTheCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://c"}}], "users": [{"name": "u"}],
		"contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}`
	testkit.Must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	exchange := "token-exchange --endpoint https://e --subject-token-file /x"
	certificate := "client-certificate --user-name jane --kubeconfig " + kubeconfig
	for _, c := range []struct {
		line, config string
		want         map[string]string // nil: it is refused
	}{
		{"oidc", `{"oidc": {"issuer": "https://i", "clientID": "c", "present": "access"}}`, map[string]string{"issuer": "https://i", "clientID": "c", "present": "access"}},
		{"oidc --issuer https://i --client-id c", `{}`, map[string]string{"present": "id"}},
		{"oidc --issuer https://i --client-id c", `{"oidc": {"issuer": "https://i"}}`, map[string]string{"issuer": "https://i"}},
		{"oidc --issuer https://i --client-id c", `{"oidc": {"issuer": "https://j"}}`, nil},
		{"oidc --issuer https://i --client-id c", `{"oidc": {"clientID": "d"}}`, nil},
		{"oidc --issuer https://i --client-id c --present id", `{"oidc": {"present": "access"}}`, nil},
		// A cluster must not choose which issuer gets the secret.
		{"oidc --client-secret-file /s", `{"oidc": {"issuer": "https://i", "clientID": "c"}}`, nil},
		{certificate, `{}`, map[string]string{"signer": "kubernetes.io/kube-apiserver-client", "duration": "24h0m0s"}},
		{certificate, `{"clientCertificate": {"signer": "a/b", "duration": "1h"}}`, map[string]string{"signer": "a/b", "duration": "1h0m0s"}},
		{certificate + " --duration 2h", `{"clientCertificate": {"duration": "1h"}}`, nil},
		{certificate, `{"clientCertificate": {"user": "admin"}}`, nil},
		{exchange, `{"tokenExchange": {"audiences": ["a", "b"], "resources": ["https://r"], "scopes": ["s"], "requestedTokenType": "t"}}`,
			map[string]string{"audiences": "a\nb", "resources": "https://r", "scopes": "s", "requestedTokenType": "t", "endpoint": "https://e"}},
		{exchange + " --audience a", `{"tokenExchange": {"audiences": ["a"]}}`, map[string]string{"audiences": "a"}},
		{exchange + " --audience a", `{"tokenExchange": {"audiences": ["b"]}}`, nil},
		{exchange + " --scope a", `{"tokenExchange": {"scopes": ["b"]}}`, nil},
		{exchange + " --requested-token-type a", `{"tokenExchange": {"requestedTokenType": "b"}}`, nil},
		{exchange, `{"tokenExchange": {"audiences": [""]}}`, nil},
		// The token of the file goes to no server that a cluster names.
		{exchange, `{"tokenExchange": {"endpoint": "https://f"}}`, nil},
		{exchange, `{"tokenExchange": {"subjectTokenFile": "/y"}}`, nil},
		{"file --path /x", `{"tokenExchange": 1}`, map[string]string{}},
		{"file --path /x", `{"file": {"name": "b"}}`, nil},
		{"file --path /x", `{"file": {"path": "/b"}}`, nil},
		{"file --folder /x", `{"file": {"name": "b"}}`, map[string]string{}},
		{"file --folder /x", `{"file": {"name": "../b"}}`, nil},
		{"file --folder x", `{"file": {"name": "b"}}`, nil},
		{"file --folder /x", `{}`, nil},
		{"workload-identity a --kubeconfig " + kubeconfig, `{"workloadIdentity": {"name": "b"}}`, nil},
		{"workload-identity a -n n --kubeconfig " + kubeconfig, `{"workloadIdentity": {"namespace": "m"}}`, nil},
	} {
		line, err := ParseLine(strings.Fields(c.line))
		testkit.Must(t, err)
		chosen, err := line.Choose(Here(time.Now), credential.ExecInfo{FromClient: true, Cluster: &credential.Cluster{Config: []byte(c.config)}})
		if err != nil || c.want == nil {
			if err == nil || c.want != nil {
				t.Errorf("%s with %s: %v", c.line, c.config, err)
			}
			continue
		}
		for name, value := range c.want {
			if got := chosen.Key()[name]; got != value {
				t.Errorf("%s with %s: %s is %q, not %q", c.line, c.config, name, got, value)
			}
		}
	}
}
