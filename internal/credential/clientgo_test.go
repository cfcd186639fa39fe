package credential_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/pkg/apis/clientauthentication"
	"k8s.io/client-go/pkg/apis/clientauthentication/install"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

// client-go's own decoder reads all that Encode writes.
func TestClientGoReadsWhatIsPrinted(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(clientauthentication.SchemeGroupVersion)
	c := credential.Credential{
		Token: credential.NewSecret("a<b>&"), CertificatePEM: []byte("cert\n"), KeyPEM: credential.NewSecret("key\n"),
		Expires: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
	for _, version := range []string{credential.V1, credential.V1Beta1} {
		out, err := c.Encode(version)
		testkit.Must(t, err)
		object, kind, err := decoder.Decode(out, nil, nil)
		if err != nil || kind.GroupVersion().String() != version {
			t.Fatalf("%s: %v, %v", version, kind, err)
		}
		status := object.(*clientauthentication.ExecCredential).Status
		if status.Token != "a<b>&" || status.ClientCertificateData != "cert\n" || status.ClientKeyData != "key\n" ||
			!status.ExpirationTimestamp.UTC().Equal(c.Expires.Truncate(time.Second)) {
			t.Errorf("%s: read as %+v", version, status)
		}
	}
}

// A client of client-go, whose server revokes its token: the provider is run again, by the same process and before the
// token expires, and gets a new one although the one that is kept is fresh.
func TestClientGoIsServedANewTokenWhenOneIsRevoked(t *testing.T) {
	p := newProcesses(t)
	testkit.Must(t, os.WriteFile(p.wait, nil, 0o600))
	var revoked atomic.Bool
	server := guarded(t, func(token string) bool { return token == "token-2" || token == "token-1" && !revoked.Load() })
	var environment []api.ExecEnvVar
	for name, value := range p.environment() {
		environment = append(environment, api.ExecEnvVar{Name: name, Value: value})
	}
	client := func() *http.Client {
		// The server is of no matter to the authenticator, which is kept for the life of the process for equal settings.
		client := testkit.Need(rest.HTTPClientFor(&rest.Config{
			Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
			ExecProvider: &api.ExecConfig{
				Command: os.Args[0], Env: environment, APIVersion: credential.V1, InteractiveMode: api.NeverExecInteractiveMode,
			},
		}))(t)
		return client
	}()
	get := func() int {
		response := testkit.Need(client.Get(server.URL + "/api"))(t)
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			var versions struct{ Kind string }
			if err := json.NewDecoder(response.Body).Decode(&versions); err != nil || !strings.HasPrefix(versions.Kind, "API") {
				t.Error(versions, err)
			}
		}
		return response.StatusCode
	}
	if got := get(); got != http.StatusOK {
		t.Fatalf("first request: %d", got)
	}
	revoked.Store(true)
	// client-go hands the 401 to the caller, and runs the provider for the next request.
	if got := get(); got != http.StatusUnauthorized {
		t.Fatalf("with a revoked token: %d", got)
	}
	if got := get(); got != http.StatusOK {
		t.Fatalf("after the revoked token: %d", got)
	}
	if calls := p.calls(); len(calls) != 2 {
		t.Errorf("the source was called by %v", calls)
	}
}
