package clitest

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// lasting is longer than this test will be run: the clock of kubectl is the real one, and not that of scripts.
const lasting = 50 * 365 * 24 * time.Hour

// credentialCluster is an API server that issues tokens which expire, knows who one is by them, and exchanges them. It writes how
// many were requested to a file.
type credentialCluster struct {
	mu     sync.Mutex
	issued int
	asked  string
	token  string

	signing *SigningFake
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
		Answer(w, http.StatusOK, map[string]any{
			"access_token": token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": lifetime.Seconds(),
		})
	case user == "":
		Refuse(w, metav1.Status{Code: 401, Reason: "Unauthorized", Message: "Unauthorized"})
	case strings.HasPrefix(r.URL.Path, signingRequestsPath):
		c.signing.ServeHTTP(w, r)
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		Answer(w, http.StatusCreated, authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
				Username: user, UID: "uid-1", Groups: []string{"developers", "evil\x1b[2J"}, Extra: map[string]authenticationv1.ExtraValue{"example.com/team": {"a", "b"}},
			}},
		})
	case strings.HasSuffix(r.URL.Path, "/workloadidentities/denied/token"):
		c.count()
		Refuse(w, metav1.Status{Code: 403, Reason: "Forbidden", Message: "no: " + c.token})
	case strings.HasSuffix(r.URL.Path, "/workloadidentities/down/token"):
		Refuse(w, metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "later"})
	case strings.HasSuffix(r.URL.Path, "/token"):
		c.count()
		lifetime := time.Hour
		if strings.Contains(r.URL.Path, "/workloadidentities/lasting/") {
			lifetime = lasting
		}
		Answer(w, http.StatusCreated, v1alpha1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Status:   v1alpha1.TokenRequestStatus{Token: c.token, ExpirationTimestamp: metav1.Time{Time: Now().Add(lifetime)}},
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

// startCredentialCluster starts $CREDENTIAL_API, with ca-credential.crt, kubeconfig-credential, a token in the file opaque, and the file asked.
func startCredentialCluster(ts *testscript.TestScript) {
	url, authorities := serveTLS(ts, &credentialCluster{
		asked: workFile(ts, "asked"), token: ts.Getenv("TOKEN"), signing: NewSigningFake(workFile(ts, "signing")),
	})
	ts.Setenv("CREDENTIAL_API", url)
	addPrograms(ts)
	write(ts, "ca-credential.crt", string(authorities))
	write(ts, "kubeconfig-credential", kubeconfig(url, "ca-credential.crt", "team"))
	write(ts, "opaque", "file-token\n")
}

// stockKubectl is the path of the kubectl that make build installs, for tests in a folder of this module.
func stockKubectl(folder string) string {
	for ; filepath.Dir(folder) != folder; folder = filepath.Dir(folder) {
		if isFile(filepath.Join(folder, "go.mod")) {
			break
		}
	}
	return filepath.Join(folder, "bin", "kubectl")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// addPrograms adds to PATH, behind the programs of the test, a credence that is another file than they are, as where it is installed,
// and the real kubectl, if this checkout has one.
func addPrograms(ts *testscript.TestScript) {
	path := ts.Getenv("PATH")
	for _, folder := range filepath.SplitList(path) {
		program := filepath.Join(folder, "credence")
		if _, err := os.Stat(program); err != nil {
			continue
		}
		installed := workFile(ts, "installed")
		ts.Check(os.MkdirAll(installed, 0o755))
		ts.Check(os.WriteFile(filepath.Join(installed, "credence"), fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\"\n", program), 0o700))
		path += string(filepath.ListSeparator) + installed
		break
	}
	// Before any other kubectl: that of the Google Cloud SDK requests a credential more often.
	if kubectl := stateOf(ts).kubectl; isFile(kubectl) {
		stock := workFile(ts, "stock")
		ts.Check(os.Mkdir(stock, 0o755))
		ts.Check(os.Symlink(kubectl, filepath.Join(stock, "kubectl")))
		path = stock + string(filepath.ListSeparator) + path
	}
	ts.Setenv("PATH", path)
}
