package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/provider"
)

// runScriptedProvider is the small program as scripts run it.
func runScriptedProvider() {
	now, err := time.Parse(time.RFC3339, scriptNow)
	if err != nil {
		panic(err)
	}
	os.Exit(provider.Run(os.Args[1:], os.Stdout, os.Stderr, func() time.Time { return now }))
}

// lasting is longer than this test will be run: the clock of kubectl is the real one, and not that of scripts.
const lasting = 50 * 365 * 24 * time.Hour

// credentialCluster is an API server that issues tokens which expire, knows who one is by them, and exchanges them. It writes how
// many were requested to a file.
type credentialCluster struct {
	mu     sync.Mutex
	issued int
	asked  string
	token  string

	signing *signingFake
}

func (c *credentialCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	users := map[string]string{"Bearer bearer": "jane", "Bearer " + c.token: "workload", "Bearer file-token": "from-file"}
	user := users[r.Header.Get("Authorization")]
	switch {
	case r.URL.Path == "/exchange":
		c.count()
		token, lifetime := c.token, time.Hour
		switch r.FormValue("audience") {
		case "lasting":
			token, lifetime = "file-token", lasting
		case "revoked":
			token, lifetime = "unknown-token", lasting
		}
		answer(w, http.StatusOK, map[string]any{
			"access_token": token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": lifetime.Seconds(),
		})
	case user == "":
		refuse(w, metav1.Status{Code: 401, Reason: "Unauthorized", Message: "Unauthorized"})
	case strings.HasPrefix(r.URL.Path, signingRequestsPath):
		c.signing.ServeHTTP(w, r)
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		answer(w, http.StatusCreated, authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
				Username: user, UID: "uid-1", Groups: []string{"developers", "evil\x1b[2J"}, Extra: map[string]authenticationv1.ExtraValue{"example.com/team": {"a", "b"}},
			}},
		})
	case strings.HasSuffix(r.URL.Path, "/workloadidentities/denied/token"):
		c.count()
		refuse(w, metav1.Status{Code: 403, Reason: "Forbidden", Message: "no: " + c.token})
	case strings.HasSuffix(r.URL.Path, "/workloadidentities/down/token"):
		refuse(w, metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "later"})
	case strings.HasSuffix(r.URL.Path, "/token"):
		c.count()
		now, _ := time.Parse(time.RFC3339, scriptNow)
		lifetime := time.Hour
		if strings.Contains(r.URL.Path, "/workloadidentities/lasting/") {
			lifetime = lasting
		}
		answer(w, http.StatusCreated, v1alpha1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Status:   v1alpha1.TokenRequestStatus{Token: c.token, ExpirationTimestamp: metav1.Time{Time: now.Add(lifetime)}},
		})
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{"you": user})
	}
}

func (c *credentialCluster) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issued++
	if err := os.WriteFile(c.asked, fmt.Appendf(nil, "%d\n", c.issued), 0o600); err != nil {
		panic(err)
	}
}

// startCredentialCluster starts it for one script: $CREDENTIAL_API, ca-credential.crt, kubeconfig-credential and the file asked.
func startCredentialCluster(env *testscript.Env) error {
	signing := &signingFake{file: filepath.Join(env.WorkDir, "signing"), requests: map[string]*certificatesv1.CertificateSigningRequest{}}
	url, authorities := serveTLS(env, &credentialCluster{asked: filepath.Join(env.WorkDir, "asked"), token: env.Getenv("TOKEN"), signing: signing})
	env.Setenv("CREDENTIAL_API", url)
	if err := addPrograms(env); err != nil {
		return err
	}
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
clusters:
- {name: cluster, cluster: {server: %q, certificate-authority: ca-credential.crt}}
users:
- {name: user, user: {token: bearer}}
contexts:
- {name: main, context: {cluster: cluster, user: user, namespace: team}}
`, url)
	for name, text := range map[string]string{
		"ca-credential.crt": string(authorities), "kubeconfig-credential": kubeconfig, "opaque": "file-token\n",
	} {
		if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// stockKubectl is the kubectl that make build installs.
const stockKubectl = "../../../bin/kubectl"

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// addPrograms adds to PATH, behind the programs of the test, a credence that is another file than they are, as where it is installed,
// and the real kubectl, if this checkout has one.
func addPrograms(env *testscript.Env) error {
	path := env.Getenv("PATH")
	for _, folder := range filepath.SplitList(path) {
		program := filepath.Join(folder, "credence")
		if _, err := os.Stat(program); err != nil {
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", program)
		installed := filepath.Join(env.WorkDir, "installed")
		if err := os.MkdirAll(installed, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(installed, "credence"), []byte(script), 0o700); err != nil {
			return err
		}
		path += string(filepath.ListSeparator) + installed
		break
	}
	// Before any other kubectl: that of the Google Cloud SDK requests a credential more often.
	if kubectl, err := filepath.Abs(stockKubectl); err == nil && isFile(kubectl) {
		stock := filepath.Join(env.WorkDir, "stock")
		if err := os.Mkdir(stock, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(kubectl, filepath.Join(stock, "kubectl")); err != nil {
			return err
		}
		path = stock + string(filepath.ListSeparator) + path
	}
	env.Setenv("PATH", path)
	return nil
}
