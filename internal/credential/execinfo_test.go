package credential_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

func TestParseAsk(t *testing.T) {
	cases := []struct {
		name, environment string
		absent, terminal  bool
		want              credential.ExecInfo
	}{
		{name: "absent", absent: true, want: credential.ExecInfo{APIVersion: credential.V1}},
		{name: "absent, at a terminal", absent: true, terminal: true, want: credential.ExecInfo{APIVersion: credential.V1, Interactive: true}},
		{name: "empty", terminal: true, want: credential.ExecInfo{APIVersion: credential.V1, Interactive: true}},
		{name: "least", terminal: true, environment: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}` + "\n",
			want: credential.ExecInfo{APIVersion: credential.V1, FromClient: true}},
		{name: "v1beta1", environment: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":true}}`,
			want: credential.ExecInfo{APIVersion: credential.V1Beta1, Interactive: true, FromClient: true}},
		{name: "no kind, no spec, unknown fields", environment: `{"apiVersion":"client.authentication.k8s.io/v1","status":null,"new":[1]}`,
			want: credential.ExecInfo{APIVersion: credential.V1, FromClient: true}},
		{name: "everything", environment: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://s:6443",
			"tls-server-name":"name","insecure-skip-tls-verify":true,"certificate-authority-data":"Y2E=","proxy-url":"http://p","disable-compression":true,
			"config":{"audience":"a"}},"interactive":true}}`,
			want: credential.ExecInfo{APIVersion: credential.V1, Interactive: true, FromClient: true, Cluster: &credential.Cluster{
				Server: "https://s:6443", TLSServerName: "name", InsecureSkipTLSVerify: true, CAData: []byte("ca"), ProxyURL: "http://p",
				DisableCompression: true, Config: json.RawMessage(`{"audience":"a"}`)}}},
		{name: "no config", environment: `{"apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://s","config":null}}}`,
			want: credential.ExecInfo{APIVersion: credential.V1, FromClient: true, Cluster: &credential.Cluster{Server: "https://s"}}},
		{name: "the names of KEP-541", environment: `{"apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://s","serverName":"n","caData":"Y2E="}}}`,
			want: credential.ExecInfo{APIVersion: credential.V1, FromClient: true, Cluster: &credential.Cluster{Server: "https://s", TLSServerName: "n", CAData: []byte("ca")}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Need(credential.ParseExecInfo(c.environment, !c.absent, c.terminal))(t)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskThatIsRefused(t *testing.T) {
	known := []string{"client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1"}
	cases := []struct {
		name, environment string
		want              []string
	}{
		{"another version", `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}`, append(known, `"client.authentication.k8s.io/v1alpha1"`)},
		{"another group", `{"apiVersion":"v1"}`, append(known, `"v1"`)},
		{"no version", `{"kind":"ExecCredential"}`, append(known, "no apiVersion")},
		{"another kind", `{"kind":"Secret","apiVersion":"client.authentication.k8s.io/v1"}`, []string{`"Secret"`, "ExecCredential"}},
		{"text", "geheim", []string{"syntax error at byte 1"}},
		{"cut off", `{"apiVersion":"client.authentication.k8s.io/v1"`, []string{"syntax error"}},
		{"two", `{"apiVersion":"client.authentication.k8s.io/v1"} {}`, []string{"syntax error"}},
		{"array", `["geheim"]`, []string{"not an object"}},
		{"string", `"geheim"`, []string{"not an object"}},
		{"null", `null`, append(known, "no apiVersion")},
		{"wrong type", `{"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":"geheim"}}`, []string{"spec.interactive"}},
		{"not base64", `{"apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"certificate-authority-data":"geheim!"}}}`, []string{"wrong value"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := credential.ParseExecInfo(c.environment, true, true)
			if err == nil {
				t.Fatalf("read as %+v", got)
			}
			for _, want := range append(c.want, "KUBERNETES_EXEC_INFO") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("error quotes the value: %q", err)
			}
		})
	}
}

func FuzzParseAsk(f *testing.F) {
	f.Add(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"s","config":{"a":[1]}},"interactive":true}}`)
	f.Add(`{"apiVersion":"client.authentication.k8s.io/v1beta1","spec":null}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, environment string) {
		info, err := credential.ParseExecInfo(environment, true, false)
		if err != nil {
			if diff := cmp.Diff(credential.ExecInfo{}, info); diff != "" {
				t.Errorf("a request and an error:\n%s", diff)
			}
			return
		}
		if info.APIVersion != credential.V1 && info.APIVersion != credential.V1Beta1 {
			t.Errorf("version %q", info.APIVersion)
		}
		if info.Cluster != nil && info.Cluster.Config != nil && !json.Valid(info.Cluster.Config) {
			t.Errorf("config %q", info.Cluster.Config)
		}
	})
}
