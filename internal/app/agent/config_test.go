package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/test/testkit"
)

func TestComplete(t *testing.T) {
	c := testkit.Need(Config{}.complete())(t)
	if c.Window != (renewal.Window{From: 0.6, To: 0.8}) || c.Concurrency != 8 || c.LeaseNamespace != "credence-system" || c.BindAddress != "127.0.0.1" {
		t.Errorf("defaults: %+v", c)
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"empty window":         {func(c *Config) { c.Window = renewal.Window{From: 0.8, To: 0.8} }, "--renew-from, --renew-to: "},
		"window without end":   {func(c *Config) { c.Window = renewal.Window{From: 0.6} }, "--renew-from, --renew-to: "},
		"window to the end":    {func(c *Config) { c.Window = renewal.Window{From: 0.6, To: 1} }, "--renew-from, --renew-to: "},
		"no namespace":         {func(c *Config) { c.Namespaces = []string{"team", "a/b"} }, "--namespaces: \"a/b\""},
		"short tokens":         {func(c *Config) { c.Duration = 9 * time.Minute }, "--token-duration 9m0s is shorter"},
		"no worker":            {func(c *Config) { c.Concurrency = -1 }, "--concurrency -1"},
		"too many":             {func(c *Config) { c.Concurrency = 257 }, "--concurrency 257"},
		"no address":           {func(c *Config) { c.BindAddress = "localhost" }, "is not an IP address"},
		"no port":              {func(c *Config) { c.HealthPort = 70000 }, "is not a port"},
		"port, no certificate": {func(c *Config) { c.HealthPort = 8443 }, "--health-port needs --tls-cert-file"},
		"pods, no port":        {func(c *Config) { c.PodsPort = 70000 }, "--pods-port 70000 is not a port"},
		"pods of one cluster":  {func(c *Config) { c.PodsPort = 8443 }, "--pods-port needs --identity-kubeconfig"},
		"pods, no certificate": {func(c *Config) { c.PodsPort, c.IdentityKubeconfig = 8443, "garden" }, "--pods-port needs --tls-cert-file"},
	} {
		config := Config{}
		test.change(&config)
		if _, err := config.complete(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestFlagsHaveTheDefaults(t *testing.T) {
	command := NewCommand()
	testkit.Must(t, command.ParseFlags(nil))
	for flag, want := range map[string]string{"renew-from": "0.6", "renew-to": "0.8", "concurrency": "8", "bind-address": "127.0.0.1", "leader-election-namespace": "credence-system", "token-duration": "0s"} {
		if got := command.Flags().Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
}

// A missing kubeconfig is an error that names the flag, before anything runs.
func TestKubeconfigThatIsNotThere(t *testing.T) {
	for flag, config := range map[string]Config{
		"--kubeconfig":          {Kubeconfig: "/no/such/file"},
		"--identity-kubeconfig": {Kubeconfig: writeKubeconfig(t), IdentityKubeconfig: "/no/such/file"},
	} {
		if err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), "/no/such/file") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func writeKubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	testkit.Must(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`), 0o600))
	return file
}
