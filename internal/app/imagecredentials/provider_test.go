package imagecredentials_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	protocol "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/credence-id/credence/internal/app/imagecredentials"
	"github.com/credence-id/credence/test/testkit"
)

// signed has the shape of a token, with the claims.
func signed(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + part([]byte(claims)) + "." + part(bytes.Repeat([]byte("s"), 64))
}

var (
	ofPod      = signed(`{"kubernetes.io":{"namespace":"shop","pod":{"name":"cart"}}}`)
	ofIdentity = signed(`{"sub":"puller","aud":["registry"]}`)
)

// node is a node's configuration, and the API that it leads to.
type node struct {
	registries, kubeconfig string
	requests               []string
	status                 int
	answer                 string
}

func newNode(t *testing.T, registries string) *node {
	t.Helper()
	n := &node{status: http.StatusCreated, answer: fmt.Sprintf(
		`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","status":{"token":%q,"expirationTimestamp":%q}}`, ofIdentity, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.requests = append(n.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(n.status)
		_, _ = w.Write([]byte(n.answer))
	}))
	t.Cleanup(api.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	n.registries = write(t, "registries.yaml", registries)
	n.kubeconfig = write(t, "kubeconfig", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"of-the-node"}}],"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}]}`,
		api.URL, base64.StdEncoding.EncodeToString(authority)))
	return n
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// run runs the program as the kubelet does.
func (n *node) run(t *testing.T, request string, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := imagecredentials.NewCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetIn(strings.NewReader(request))
	command.SetOut(&out)
	command.SetArgs(append(arguments, "--registries", n.registries, "--kubeconfig", n.kubeconfig))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func request(image, token string, annotations map[string]string) string {
	content, _ := json.Marshal(map[string]any{
		"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderRequest",
		"image": image, "serviceAccountToken": token, "serviceAccountAnnotations": annotations,
	})
	return string(content)
}

var named = map[string]string{"identity.credence.dev/image-pull-identity": "puller"}

const oneRegistry = `registries: [{images: "registry.example.com/team", audiences: [registry], exchange: token-server}]`

// A request gets the password of the one registry, by a token that was requested as the pod's service account.
func TestCredentials(t *testing.T) {
	for settings, kept := range map[string]string{"": "5m0s", "cacheDuration: 10s\n": "10s", "cacheDuration: 0s\n": "0s"} {
		n := newNode(t, settings+oneRegistry)
		out := testkit.Need(n.run(t, request("registry.example.com/team/app", ofPod, named)))(t)
		var got protocol.CredentialProviderResponse
		testkit.Must(t, json.Unmarshal([]byte(out), &got))
		if got.APIVersion != "credentialprovider.kubelet.k8s.io/v1" || got.Kind != "CredentialProviderResponse" || got.CacheKeyType != "Image" || got.CacheDuration.Duration.String() != kept {
			t.Errorf("%q: %s", settings, out)
		}
		want := map[string]protocol.AuthConfig{"registry.example.com/team": {Username: "credence", Password: ofIdentity}}
		if diff := cmp.Diff(want, got.Auth); diff != "" {
			t.Error(diff)
		}
		path := "POST /apis/authentication.gardener.cloud/v1alpha1/namespaces/shop/workloadidentities/puller/selftoken Bearer " + ofPod
		if diff := cmp.Diff([]string{path}, n.requests); diff != "" {
			t.Error(diff)
		}
	}
}

// An account names one identity, and the author of its pods any image: the token of one registry is not handed to another of the node.
func TestOneIdentityAndTwoRegistries(t *testing.T) {
	n := newNode(t, `registries:
- {images: registry.example.com, audiences: [registry], exchange: token-server}
- {images: partner.example.com, audiences: [partner], exchange: token-server}
`)
	if out, err := n.run(t, request("registry.example.com/team/app", ofPod, named)); err != nil || !strings.Contains(out, ofIdentity) {
		t.Errorf("%q, %v", out, err)
	}
	out, err := n.run(t, request("partner.example.com/team/app", ofPod, named))
	want := `image partner.example.com/team/app: get credentials for images of partner.example.com: the identity's token is for audience "registry"`
	if err == nil || out != "" || !strings.Contains(err.Error(), want) {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// A password is not kept until the very second at which it ends, and not at all if that is not known.
func TestKeptNoLongerThanThePassword(t *testing.T) {
	at := func(left time.Duration) string {
		return fmt.Sprintf(`,"expirationTimestamp":%q`, time.Now().Add(left).UTC().Format(time.RFC3339))
	}
	for left, most := range map[string]time.Duration{at(30 * time.Second): 0, at(3 * time.Minute): 2 * time.Minute, at(-time.Hour): 0, "": 0} {
		n := newNode(t, oneRegistry)
		n.answer = fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","status":{"token":%q%s}}`, ofIdentity, left)
		out, err := n.run(t, request("registry.example.com/team/app", ofPod, named))
		var got protocol.CredentialProviderResponse
		if err == nil {
			err = json.Unmarshal([]byte(out), &got)
		}
		if err != nil || got.CacheDuration.Duration > most {
			t.Errorf("%s: %s, %v", left, out, err)
		}
	}
}

// A refusal is an error that has what to do, and no token; nothing is printed, and for images of other registries nothing is sent.
func TestImageCredentialsRefused(t *testing.T) {
	refusal := func(code int, reason, message, details string) (int, string) {
		return code, fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":%q%s}`, code, reason, message, details)
	}
	const app = "registry.example.com/team/app"
	for name, c := range map[string]struct {
		request string
		answer  func() (int, string)
		want    string
		sent    bool
	}{
		"another registry":  {request: request("evil.example.com/team/app", ofPod, named), want: "image evil.example.com/team/app: no registry of the configuration has it: name its host in --registries"},
		"another folder":    {request: request("registry.example.com/teams/app", ofPod, named), want: "no registry of the configuration has it"},
		"no annotation":     {request: request(app, ofPod, nil), want: "the service account has no annotation identity.credence.dev/image-pull-identity"},
		"a bad annotation":  {request: request(app, ofPod, map[string]string{"identity.credence.dev/image-pull-identity": "../other"}), want: `is "../other": give the name of a WorkloadIdentity`},
		"no token":          {request: request(app, "", named), want: "set tokenAttributes"},
		"no account's":      {request: request(app, signed(`{"sub":"x"}`), named), want: "is not one of a service account"},
		"another namespace": {request: request(app, signed(`{"kubernetes.io":{"namespace":"../../x"}}`), named), want: "is not one of a service account"},
		"no JSON":           {request: "x", want: "is not a request of a kubelet"},
		"too large":         {request: request(app, strings.Repeat("a", 1<<20), named), want: "is not a request of a kubelet"},
		"another version":   {request: strings.Replace(request(app, ofPod, named), "/v1", "/v1beta1", 1), want: "set apiVersion: credentialprovider.kubelet.k8s.io/v1"},
		"no right": {request: request(app, ofPod, named), sent: true, want: "no token of workload identity shop/puller: may not use it",
			answer: func() (int, string) { return refusal(403, "Forbidden", "may not use it", "") }},
		"no identity": {request: request(app, ofPod, named), sent: true, want: "it does not exist: create it, or correct annotation identity.credence.dev/image-pull-identity",
			answer: func() (int, string) {
				return refusal(404, "NotFound", "none", `,"details":{"name":"puller","kind":"workloadidentities"}`)
			}},
		"an old server": {request: request(app, ofPod, named), sent: true, want: "the API has no workloadidentities/selftoken",
			answer: func() (int, string) { return 404, "404 page not found" }},
		"another audience": {request: request(app, ofPod, named), sent: true, want: "serviceAccountTokenAudience of the kubelet's configuration has to be an audience of the API",
			answer: func() (int, string) { return refusal(401, "Unauthorized", "Unauthorized", "") }},
		"an outage": {request: request(app, ofPod, named), sent: true, want: "no token of workload identity shop/puller: ",
			answer: func() (int, string) { return 503, "<html>" + ofPod + "</html>" }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, oneRegistry)
			if c.answer != nil {
				n.status, n.answer = c.answer()
			}
			out, err := n.run(t, c.request)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if out != "" || (len(n.requests) > 0) != c.sent {
				t.Errorf("prints %q, sends %q", out, n.requests)
			}
			if err != nil && strings.Contains(err.Error(), ofPod[:60]) {
				t.Errorf("a token is in %v", err)
			}
		})
	}
}

func TestConfigurationOfTheKubelet(t *testing.T) {
	n := newNode(t, `registries: [{images: "registry.example.com/team", audiences: [registry], exchange: token-server}, {images: "localhost:5000", audiences: [registry], exchange: token-server}]`)
	out := testkit.Need(n.run(t, "", "kubelet-config", "--audience", "https://api.example.com"))(t)
	want := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- apiVersion: credentialprovider.kubelet.k8s.io/v1
  args:
  - --registries
  - %s
  - --kubeconfig
  - %s
  defaultCacheDuration: 0s
  matchImages:
  - registry.example.com/team
  - localhost:5000
  name: credence-image-credentials
  tokenAttributes:
    cacheType: Token
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys:
    - identity.credence.dev/image-pull-identity
    serviceAccountTokenAudience: https://api.example.com
`, n.registries, n.kubeconfig)
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	// A password that an exchange makes is the account's.
	n = newNode(t, `registries: [{images: "registry.example.com/team", audiences: [registry], exchange: token-exchange, settings: {endpoint: "https://login.example.com"}}]`)
	if out, err := n.run(t, "", "kubelet-config", "--audience", "https://api.example.com"); err != nil || !strings.Contains(out, "cacheType: ServiceAccount\n") {
		t.Errorf("%v, want cacheType: ServiceAccount in\n%s", err, out)
	}
	for name, c := range map[string]struct {
		change    func(*node)
		arguments []string
		want      string
	}{
		"no audience":      {func(*node) {}, []string{"kubelet-config"}, "--audience is required"},
		"no registries":    {func(n *node) { n.registries += "x" }, []string{"kubelet-config", "--audience", "a"}, "no such file"},
		"wrong registries": {func(n *node) { n.registries = write(t, "r", "registries: []") }, []string{"kubelet-config", "--audience", "a"}, "registries is empty"},
		"no API":           {func(n *node) { n.kubeconfig = "" }, []string{"kubelet-config", "--audience", "a"}, "--kubeconfig is required"},
		"an API in the clear": {func(n *node) {
			n.kubeconfig = write(t, "k", `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`)
		}, []string{}, "tokens of pods are sent there, and need an https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, oneRegistry)
			c.change(n)
			if out, err := n.run(t, request("registry.example.com/team/app", ofPod, named), c.arguments...); err == nil || out != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v, want %q", out, err, c.want)
			}
		})
	}
}

// The exchange has the target system of the identity as the API returns it: here it is a store, to which no token is sent.
func TestTargetOfTheIdentity(t *testing.T) {
	const ecr = "112233445566.dkr.ecr.eu-central-1.amazonaws.com"
	n := newNode(t, "registries: [{images: "+ecr+", audiences: [registry], exchange: amazon-ecr}]")
	n.answer = strings.Replace(n.answer, `"status":{`, `"status":{"targetSystem":{"type":"aws","providerConfig":{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:minio:iam:::role/app","endpoint":"https://minio.example.com"}},`, 1)
	out, err := n.run(t, request(ecr+"/app", ofPod, named))
	if want := "image " + ecr + "/app: get credentials for images of " + ecr + ": the identity is for the store at https://minio.example.com"; err == nil || out != "" || !strings.Contains(err.Error(), want) {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// The program copies itself, in one step and over what is there.
func TestInstall(t *testing.T) {
	n, to := newNode(t, oneRegistry), filepath.Join(t.TempDir(), "folder", "providers")
	own := testkit.Need(os.Executable())(t)
	want := testkit.Need(os.ReadFile(own))(t)
	path := filepath.Join(to, "credence-image-credentials")
	for _, before := range []string{"", "another version"} {
		if before != "" {
			testkit.Must(t, os.WriteFile(path, []byte(before), 0o600))
		}
		if out, err := n.run(t, "", "install", "--to", to); err != nil || out != "" {
			t.Fatalf("%q, %v", out, err)
		}
		have, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%d bytes, want %d: %v", len(have), len(want), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode %v, %v", info, err)
		}
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, wrong := range []string{"", "folder"} {
		if _, err := n.run(t, "", "install", "--to", wrong); err == nil || !strings.Contains(err.Error(), "--to is required: the absolute path of the folder") {
			t.Errorf("--to %q: %v", wrong, err)
		}
	}
}
