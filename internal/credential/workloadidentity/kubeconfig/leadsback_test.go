package kubeconfig_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

// with returns a kubeconfig whose user runs a program.
func with(t *testing.T, path, command string, args ...string) string {
	t.Helper()
	list := testkit.Need(json.Marshal(args))(t)
	name := testkit.Need(json.Marshal(command))(t)
	return put(t, path, `{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://c.example"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": `+string(name)+`, "args": `+string(list)+`}}}]}`)
}

func TestKubeconfigThatLeadsBackIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs links, which Windows gives to administrators")
	}
	dir := t.TempDir()
	installed := filepath.Join(dir, "bin", "credence")
	put(t, installed, "program")
	put(t, filepath.Join(dir, "bin", "credence-credential"), "small program")
	put(t, filepath.Join(dir, "bin", "kubectl"), "kubectl")
	put(t, filepath.Join(dir, "bin", "aws"), "another")
	for _, name := range []string{"credence", "credence-credential", "kubectl", "aws"} {
		testkit.Must(t, os.Chmod(filepath.Join(dir, "bin", name), 0o700))
	}
	link := func(make func(string, string) error, target, name string) string {
		path := filepath.Join(dir, "links", name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(t, make(target, path))
		return path
	}
	bin := func(name string) string { return filepath.Join(dir, "bin", name) }
	symlink := link(os.Symlink, installed, "login")
	link(os.Symlink, symlink, "login-again")
	hard := link(os.Link, installed, "hard")
	hardSmall := link(os.Link, bin("credence-credential"), "hard-small")
	link(os.Symlink, bin("kubectl"), "k")
	t.Setenv("PATH", filepath.Join(dir, "links")+string(filepath.ListSeparator)+filepath.Join(dir, "bin"))

	workload := []string{"credential", "workload-identity", "x"}
	refused := map[string][]string{
		"by name":                 append([]string{"credence"}, workload...),
		"by path":                 append([]string{installed}, workload...),
		"by relative path":        append([]string{"../bin/credence"}, workload...),
		"the small program":       {"credence-credential", "workload-identity", "x"},
		"the plugin":              append([]string{"kubectl-credence"}, workload...),
		"by kubectl":              append([]string{"kubectl", "credence"}, workload...),
		"by a link to kubectl":    append([]string{"k", "credence"}, workload...),
		"by a link":               append([]string{"login"}, workload...),
		"by a link to a link":     append([]string{"login-again"}, workload...),
		"by a hard link":          append([]string{hard}, workload...),
		"hard, the small one":     {hardSmall, "workload-identity", "x"},
		"a certificate":           {"credence", "credential", "client-certificate"},
		"a link, relative":        append([]string{"../links/login"}, workload...),
		"by another kubeconfig":   {"credence", "credential", "workload-identity", "x", "--kubeconfig", filepath.Join(dir, "other")},
		"flags first":             {"credence", "--context", "oidc", "credential", "workload-identity", "x"},
		"not installed":           append([]string{"/opt/credence"}, workload...),
		"a source by that name":   {"credence", "credential", "workload-identity", "oidc"},
		"no source":               {"credence", "credential"},
		"not even the subcommand": {"credence"},
	}
	for what, c := range refused {
		t.Run("refused "+what, func(t *testing.T) {
			path := with(t, filepath.Join(dir, "configs", "c"), c[0], c[1:]...)
			_, err := kubeconfig.Choice{Path: path, Environment: environment(), Program: installed}.Read()
			if !errors.Is(err, kubeconfig.ErrLeadsBack) {
				t.Errorf("not refused: %v", err)
			}
		})
	}
	taken := map[string][]string{
		"another program":     {"aws", "eks", "get-token"},
		"one not installed":   {"gke-gcloud-auth-plugin"},
		"another of kubectl":  {"kubectl", "oidc-login"},
		"a login":             {"credence", "credential", "oidc", "--issuer", "https://i.example"},
		"a login, small":      {"credence-credential", "oidc"},
		"a login by kubectl":  {"kubectl", "credence", "credential", "oidc"},
		"a file":              {"login", "credential", "file", "/token"},
		"an exchange, a link": {hard, "credential", "token-exchange"},
	}
	for what, c := range taken {
		t.Run("taken "+what, func(t *testing.T) {
			path := with(t, filepath.Join(dir, "configs", "c"), c[0], c[1:]...)
			testkit.Expect(t, testkit.Err((kubeconfig.Choice{Path: path, Environment: environment(), Program: installed}).Read()), "refused")
			if _, err := (kubeconfig.Choice{Path: path, Environment: environment(kubeconfig.Guard, "1")}).Read(); !errors.Is(err, kubeconfig.ErrLeadsBack) {
				t.Errorf("not refused within: %v", err)
			}
		})
	}
}
