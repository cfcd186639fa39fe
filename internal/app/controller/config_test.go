package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

func complete() Config {
	return Config{Issuer: "https://issuer.example", KeysDir: "/keys", DocumentsConfigMap: "credence-system/credence-discovery"}
}

func TestCheck(t *testing.T) {
	c := testkit.Need(complete().check())(t)
	if c.Settings.Wait() != 28*time.Hour+time.Minute || c.KeysInterval != 10*time.Second || c.LeaseNamespace != "credence-system" || c.BindAddress != "127.0.0.1" {
		t.Errorf("defaults: %+v", c)
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no issuer":            {func(c *Config) { c.Issuer = "" }, "--issuer is missing"},
		"bad issuer":           {func(c *Config) { c.Issuer = "http://issuer.example" }, "--issuer: "},
		"no store":             {func(c *Config) { c.KeysDir = "" }, "exactly one of --keys-secret"},
		"two stores":           {func(c *Config) { c.KeysSecret = "ns/name" }, "exactly one of --keys-secret"},
		"bad Secret":           {func(c *Config) { c.KeysDir, c.KeysSecret = "", "name" }, "--keys-secret: \"name\" must be NAMESPACE/NAME"},
		"no documents":         {func(c *Config) { c.DocumentsConfigMap = "" }, "exactly one of --documents-configmap"},
		"two places":           {func(c *Config) { c.DocumentsDir = "/public" }, "exactly one of --documents-configmap"},
		"bad ConfigMap":        {func(c *Config) { c.DocumentsConfigMap = "a/b/c" }, "--documents-configmap: "},
		"bad URL":              {func(c *Config) { c.PublishCheckURL = "http://cdn.example" }, "--publish-check-url: "},
		"CA of no URL":         {func(c *Config) { c.PublishCheckCAFile = "/ca" }, "--publish-check-ca-file needs"},
		"P below max-age":      {func(c *Config) { c.Settings.PublishPeriod = time.Minute }, "shorter than the max-age"},
		"short period":         {func(c *Config) { c.Settings.RotationPeriod = 25 * time.Hour }, "rotation period 25h0m0s is shorter"},
		"rare looks":           {func(c *Config) { c.KeysInterval = time.Minute }, "half of --keys-staleness"},
		"no address":           {func(c *Config) { c.BindAddress = "localhost" }, "is not an IP address"},
		"no port":              {func(c *Config) { c.HealthPort = 70000 }, "is not a port"},
		"port, no certificate": {func(c *Config) { c.HealthPort = 8443 }, "--health-port needs --tls-cert-file"},
	} {
		config := complete()
		test.change(&config)
		if _, err := config.check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestFlagsHaveTheDefaultsOfTheSettings(t *testing.T) {
	command := NewCommand()
	testkit.Must(t, command.ParseFlags(nil))
	standard := testkit.Need(keys.Settings{}.Complete())(t)
	for flag, want := range map[string]time.Duration{
		"key-rotation-period": standard.RotationPeriod, "key-publish-period": standard.PublishPeriod, "max-age": standard.MaxAge,
		"token-max-duration": standard.MaxLifetime, "key-leeway": standard.Leeway, "keys-staleness": standard.Staleness, "clock-skew": standard.ClockSkew,
	} {
		if got, err := command.Flags().GetDuration(flag); err != nil || got != want {
			t.Errorf("--%s is %s, %v, want %s", flag, got, err, want)
		}
	}
}
