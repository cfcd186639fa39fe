package execcredential_test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/execcredential"
)

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: dev
contexts:
- name: dev
  context: {cluster: dev, user: jane}
- name: static
  context: {cluster: dev, user: robot}
- name: noexec
  context: {cluster: dev, user: bare}
clusters:
- name: dev
  cluster:
    server: https://1.2.3.4:6443
    tls-server-name: dev.example
    certificate-authority: ca.pem
    proxy-url: http://proxy:3128
    disable-compression: true
    extensions:
    - name: exec
      extension: {audience: proposed}
    - name: client.authentication.k8s.io/exec
      extension: {zeta: yes, audience: shipped, since: 2030-01-01, 7: seven, nested: [1, 2.5, null, "on"]}
- name: proposed
  cluster:
    server: https://1.2.3.4:6443
    certificate-authority-data: Q0E=
    extensions:
    - name: exec
      extension: {audience: proposed}
users:
- name: jane
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/login
      args: [--for, jane]
      env: [{name: A, value: b}]
      interactiveMode: IfAvailable
      provideClusterInfo: true
      installHint: "brew install login\e[31m"
- name: beta
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login}
- name: robot
  user:
    token: abc
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}
- name: bare
  user: {}
`

func write(t *testing.T, content string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"config": content, "ca.pem": "CA"} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return filepath.Join(folder, "config")
}

func TestLoadKubeconfig(t *testing.T) {
	path := write(t, kubeconfig)
	got := need(execcredential.LoadKubeconfig(path, execcredential.Selection{}))(t)
	want := execcredential.Config{
		Command:            "bin/login",
		Args:               []string{"--for", "jane"},
		Env:                []execcredential.EnvVar{{Name: "A", Value: "b"}},
		APIVersion:         execcredential.V1,
		InteractiveMode:    execcredential.IfAvailable,
		InstallHint:        "brew install loginU+001B[31m",
		ProvideClusterInfo: true,
		Folder:             filepath.Dir(path),
		Cluster: execcredential.Cluster{
			Server:                   "https://1.2.3.4:6443",
			TLSServerName:            "dev.example",
			CertificateAuthorityData: []byte("CA"),
			ProxyURL:                 "http://proxy:3128",
			DisableCompression:       true,
			Extension:                []byte(`{"7":"seven","audience":"shipped","nested":[1,2.5,null,"on"],"since":"2030-01-01","zeta":true}`),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSelection(t *testing.T) {
	path := write(t, kubeconfig)
	got := need(execcredential.LoadKubeconfig(path, execcredential.Selection{User: "beta", Cluster: "proposed"}))(t)
	if got.Command != "login" || string(got.Cluster.Extension) != `{"audience":"proposed"}` || string(got.Cluster.CertificateAuthorityData) != "CA" {
		t.Errorf("got %+v", got)
	}
}

func TestBadKubeconfigs(t *testing.T) {
	entry := func(exec string) string {
		return "current-context: c\ncontexts: [{name: c, context: {user: u}}]\nusers: [{name: u, user: {exec: " + exec + "}}]\n"
	}
	for name, bad := range map[string]struct {
		content   string
		selection execcredential.Selection
		want      string
		is        error
	}{
		"not YAML":         {content: "{", want: "yaml"},
		"other kind":       {content: "apiVersion: v1\nkind: Pod\n", want: "is a Pod of v1"},
		"wrong type":       {content: "current-context: a\nusers: [{name: u, user: {exec: {args: 7}}}]\n", want: "line 2"},
		"secret elsewhere": {content: "current-context: a\nusers: [{name: u, user: {exec: {args: s3cr3t}}}]\n", want: "(a value)"},
		"empty":            {content: "", want: "current-context: is empty"},
		"no context":       {content: "current-context: x\n", want: "contexts[name=x]: does not exist"},
		"no user":          {content: "current-context: c\ncontexts: [{name: c, context: {user: u}}]\n", want: "users[name=u]: does not exist"},
		"empty user":       {content: "current-context: c\ncontexts: [{name: c}]\n", want: "contexts[name=c].context.user: is empty"},
		"user twice":       {content: "users: [{name: u}, {name: u}]\n", selection: execcredential.Selection{User: "u"}, want: "users[name=u]: is there twice"},
		"no cluster":       {content: kubeconfig, selection: execcredential.Selection{Cluster: "x"}, want: "clusters[name=x]: does not exist"},
		"token, password":  {content: "users: [{name: u, user: {token: s3cr3t, username: jane}}]\n", selection: execcredential.Selection{User: "u"}, want: "users[name=u].user: exec credential: token is set beside"},
		"impersonation":    {content: "users: [{name: u, user: {token: a, as: viewer}}]\n", selection: execcredential.Selection{User: "u"}, want: "users[name=u].user.as: impersonation is not supported"},
		"no key":           {content: "users: [{name: u, user: {client-certificate: c.pem}}]\n", selection: execcredential.Selection{User: "u"}, want: "client-key is missing"},
		"bad key":          {content: "users: [{name: u, user: {client-certificate: c.pem, client-key-data: s3cr3t!}}]\n", selection: execcredential.Selection{User: "u"}, want: "client-key-data is not base64"},
		"no exec":          {content: kubeconfig, selection: execcredential.Selection{Context: "noexec"}, want: "users[name=bare].user", is: execcredential.ErrNoExec},
		"no command":       {content: entry(`{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}`), want: "users[name=u].user.exec: exec credential: command is empty"},
		"no version":       {content: entry(`{command: x}`), want: "apiVersion is empty"},
		"alpha":            {content: entry(`{command: x, apiVersion: client.authentication.k8s.io/v1alpha1}`), want: `apiVersion is "client.authentication.k8s.io/v1alpha1"; supported are`},
		"no mode":          {content: entry(`{command: x, apiVersion: client.authentication.k8s.io/v1}`), want: "interactiveMode is empty"},
		"wrong mode":       {content: entry(`{command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Maybe}`), want: `interactiveMode is "Maybe"`},
		"no variable name": {content: entry(`{command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, env: [{value: a}]}`), want: "env[0].name is empty"},
		"bad variable":     {content: entry(`{command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, env: [{name: a=b}]}`), want: `env[0].name "a=b" contains`},
		"both plugins":     {content: "users: [{name: u, user: {auth-provider: {name: x}, exec: {command: x}}}]\n", selection: execcredential.Selection{User: "u"}, want: "can't be used together"},
		"bad CA":           {content: "users: [{name: u, user: {exec: {command: x}}}]\nclusters: [{name: c, cluster: {certificate-authority-data: '!'}}]\n", selection: execcredential.Selection{User: "u", Cluster: "c"}, want: "certificate-authority-data"},
		"missing CA":       {content: "users: [{name: u, user: {exec: {command: x}}}]\nclusters: [{name: c, cluster: {certificate-authority: none.pem}}]\n", selection: execcredential.Selection{User: "u", Cluster: "c"}, want: "certificate-authority", is: fs.ErrNotExist},
		"bad extension":    {content: "users: [{name: u, user: {exec: {command: x}}}]\nclusters: [{name: c, cluster: {extensions: [{name: exec, extension: .nan}]}}]\n", selection: execcredential.Selection{User: "u", Cluster: "c"}, want: "extensions[name=exec]"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, bad.content)
			_, err := execcredential.LoadKubeconfig(path, bad.selection)
			var typed *execcredential.KubeconfigError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), bad.want) || bad.is != nil && !errors.Is(err, bad.is) {
				t.Fatalf("got %v, want an error with %q", err, bad.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error shows the secret: %v", err)
			}
			if typed.Path != path {
				t.Errorf("path is %q", typed.Path)
			}
		})
	}
	if _, err := execcredential.LoadKubeconfig(filepath.Join(t.TempDir(), "none"), execcredential.Selection{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestRelativeCommandNeedsAFolder(t *testing.T) {
	_, err := execcredential.ParseKubeconfig([]byte(strings.Replace(kubeconfig, "certificate-authority: ca.pem", "", 1)), "", execcredential.Selection{})
	var typed *execcredential.ConfigError
	if !errors.As(err, &typed) || typed.Field != "command" {
		t.Fatalf("got %v", err)
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig))
	f.Add([]byte(`{"users":[{"name":"u","user":{"exec":{"command":"a"}}}],"clusters":[{"name":"c","cluster":{"extensions":[{"name":"exec","extension":{"a":[1]}}]}}]}`))
	f.Add([]byte("a: &a [*a]\nusers: *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range []execcredential.Selection{{}, {User: "u", Cluster: "c"}} {
			config, err := execcredential.ParseKubeconfig(data, "", s)
			if err == nil {
				expect(t, config.Validate(), "what was read is not valid")
			} else if typed := (*execcredential.KubeconfigError)(nil); !errors.As(err, &typed) {
				t.Errorf("error of type %T", err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, bad := range malformed(f) {
		if len(bad.output) < 4<<10 { // a fuzzer would do nothing but make the large one smaller
			f.Add([]byte(bad.output))
		}
	}
	f.Add([]byte(withStatus(`{"token":"abc","expirationTimestamp":"2030-01-01T12:00:00Z"}`)))
	f.Add([]byte("apiVersion: client.authentication.k8s.io/v1\nstatus: {token: " + base64.StdEncoding.EncodeToString([]byte("x")) + "}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		credential, err := execcredential.Decode(data, execcredential.V1, start)
		if (credential == nil) == (err == nil) {
			t.Fatalf("credential %v and error %v", credential, err)
		}
		if err != nil {
			if typed := (*execcredential.OutputError)(nil); !errors.As(err, &typed) || typed.Problem == "" {
				t.Errorf("error of type %T", err)
			}
			return
		}
		if credential.Token() == "" && credential.Certificate() == nil {
			t.Error("a credential of nothing")
		}
		if strings.ContainsFunc(credential.Token(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("token %q can't be sent", credential.Token())
		}
	})
}
