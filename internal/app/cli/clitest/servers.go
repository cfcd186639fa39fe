package clitest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"crypto/rand"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/pki"
)

// servers are those that a script can start. Each sets variables and writes files, by which the script finds it.
func servers() map[string]func(*testscript.TestScript) {
	return map[string]func(*testscript.TestScript){
		"issuer":      startIssuer,
		"cluster":     startCluster,
		"identities":  startSecondCluster,
		"credentials": startCredentialCluster,
		"discovery":   startDiscovery,
		"agent":       makeAgentCertificate,
	}
}

// start NAME... starts servers. The tokens of clusters are those of the issuer, which is started for them.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: start NAME...")
	}
	state := stateOf(ts)
	if state.started == nil {
		state.started = map[string]bool{}
		args = append([]string{"issuer"}, args...)
	}
	for _, name := range args {
		server, ok := servers()[name]
		if !ok {
			ts.Fatalf("unknown server %q", name)
		}
		if !state.started[name] {
			state.started[name] = true
			server(ts)
		}
	}
}

// serveTLS starts a server for one script, and returns its URL and its certificate.
func serveTLS(ts *testscript.TestScript, handler http.Handler) (url string, authorities []byte) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = DiscardLog()
	server.StartTLS()
	ts.Defer(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// workFile is the path of a file in the folder that a script starts in.
func workFile(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("WORK"), name)
}

func write(ts *testscript.TestScript, name, text string) {
	ts.Check(os.WriteFile(workFile(ts, name), []byte(text), 0o600))
}

// kubeconfig returns a kubeconfig for a server, whose certificate is in a file beside it. More contexts can be added to its end.
func kubeconfig(server, authorities, namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
clusters:
- {name: cluster, cluster: {server: %q, certificate-authority: %s}}
users:
- {name: user, user: {token: bearer}}
contexts:
- {name: main, context: {cluster: cluster, user: user, namespace: %s}}
`, server, authorities, namespace)
}

// makeAgentCertificate sets variables to the certificate of an agent's Service, and to that of its authority, in base64.
func makeAgentCertificate(ts *testscript.TestScript) {
	pair, err := pki.New("ca", time.Hour, Now(), rand.Reader)
	ts.Check(err)
	authority, err := pki.Load(pair.Certificate, pair.Key, Now())
	ts.Check(err)
	serving, err := authority.Issue(pki.Request{CommonName: "credence-agent", Hosts: []string{"credence-agent.credence-system.svc"}}, Now(), rand.Reader)
	ts.Check(err)
	ts.Setenv("AGENT_CA", base64.StdEncoding.EncodeToString(pair.Certificate))
	ts.Setenv("AGENT_CERTIFICATE", base64.StdEncoding.EncodeToString(serving.Certificate))
}

// Refuse answers a request with a status of the Kubernetes API.
func Refuse(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	Answer(w, int(status.Code), status)
}

// Answer answers a request with an object in JSON.
func Answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		panic(err)
	}
}

// DiscardLog returns a log that nothing is read of.
func DiscardLog() *log.Logger { return log.New(io.Discard, "", 0) }
