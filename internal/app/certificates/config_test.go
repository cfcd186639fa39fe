package certificates

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/serving"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string // of the error; empty: none
	}{
		"nothing set":                 {Config{}, ""},
		"one component":               {Config{Components: []string{"credence-webhook"}, Hosts: []string{"credence-webhook=192.0.2.1", "credence-webhook=w.example.com"}}, ""},
		"as short as it may be":       {Config{Lifetime: 6 * time.Second, AuthorityLifetime: 18 * time.Second, Overlap: time.Second}, ""},
		"an unknown component":        {Config{Components: []string{"webhook"}}, `unknown component "webhook"`},
		"a host without a component":  {Config{Hosts: []string{"w.example.com"}}, "--host"},
		"a host that is not a name":   {Config{Hosts: []string{"credence-webhook=w example"}}, "--host"},
		"a host of another component": {Config{Components: []string{"credence-agent"}, Hosts: []string{"credence-webhook=w.example.com"}}, "--host"},
		"a wrong domain":              {Config{ClusterDomain: "cluster local"}, "--cluster-domain"},
		"a wrong address":             {Config{Health: serving.Health{BindAddress: "localhost"}}, "--bind-address"},
		"a wrong port":                {Config{Health: serving.Health{HealthPort: 70000}}, "--health-port"},
		"a certificate of others":     {Config{Health: serving.Health{TLSCertFile: "tls.crt"}}, "--tls-cert-file"},
		"another source":              {Config{CAFile: "ca.crt", RegisterAPI: true, Health: serving.Health{HealthPort: 8443, TLSCertFile: "tls.crt", TLSPrivateKeyFile: "tls.key"}}, ""},
		"its port, no certificate":    {Config{CAFile: "ca.crt", RegisterAPI: true, Health: serving.Health{HealthPort: 8443}}, "--health-port needs"},
		"its address":                 {Config{CAFile: "ca.crt", RegisterAPI: true, Health: serving.Health{BindAddress: "localhost"}}, "--bind-address"},
		"it without the API":          {Config{CAFile: "ca.crt"}, "--ca-file is for --register-api"},
		"a short overlap":             {Config{Overlap: time.Millisecond}, "--overlap"},
		"a short lifetime":            {Config{Lifetime: 59 * time.Minute}, "--certificate-lifetime"},
		"a short authority":           {Config{AuthorityLifetime: 89 * 24 * time.Hour}, "--authority-lifetime"},
	} {
		_, wanted, err := test.config.check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if test.config.CAFile != "" {
			if len(wanted) > 0 {
				t.Errorf("%s: makes %v", name, wanted)
			}
		} else if err == nil && wanted[len(wanted)-1].Name != "credence-certificates" {
			t.Errorf("%s: %v has no certificate of its own", name, wanted)
		}
	}
}
