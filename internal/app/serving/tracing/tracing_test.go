package tracing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

func TestConfiguration(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for name, test := range map[string]struct{ text, want string }{
		"least":            {head, ""},
		"all":              {head + "endpoint: localhost:4317\nsamplingRatePerMillion: 100\n", ""},
		"beta":             {strings.Replace(head, "/v1", "/v1beta1", 1), ""},
		"socket":           {head + "endpoint: unix:///run/otel.sock\n", ""},
		"no kind":          {"endpoint: localhost:4317\n", `kind ""`},
		"another kind":     {strings.Replace(head, "Tracing", "Admission", 1), `kind "AdmissionConfiguration"`},
		"another version":  {strings.Replace(head, "/v1", "/v3", 1), `apiserver.config.k8s.io/v3`},
		"unknown field":    {head + "endpont: localhost:4317\n", "endpont"},
		"rate":             {head + "samplingRatePerMillion: 2000000\n", "less than or equal to one million"},
		"negative rate":    {head + "samplingRatePerMillion: -1\n", "must be positive"},
		"scheme":           {head + "endpoint: https://localhost:4317\n", "unsupported scheme"},
		"not YAML":         {"\t", "read "},
		"more than one":    {head + "endpoint: a:1\nendpoint: b:1\n", "endpoint"},
		"field of another": {head + "url: http://localhost:4317\n", "url"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tracing.yaml")
			testkit.Must(t, os.WriteFile(file, []byte(test.text), 0o600))
			provider, err := New(t.Context(), file, "test")
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				testkit.Expect(t, provider.Shutdown(t.Context()))
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "--tracing-config-file: ") {
				t.Errorf("%v, want an error of the flag with %q", err, test.want)
			}
		})
	}
	if _, err := New(t.Context(), filepath.Join(t.TempDir(), "missing"), "test"); err == nil {
		t.Error("a file that does not exist is taken")
	}
}

// Without a file nothing is traced.
func TestNoFile(t *testing.T) {
	provider, err := New(t.Context(), "", "test")
	if provider != nil || err != nil {
		t.Errorf("%v, %v", provider, err)
	}
	provider.Trace(nil)
	testkit.Expect(t, provider.Shutdown(t.Context()))
}
