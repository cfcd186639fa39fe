package clitest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// clusterFake answers as a cluster with Credence would. Its answers follow from the names in the request. It stands
// for the wire only: the rules of the API are tested against the real one.
type clusterFake struct {
	token  string
	record string // the file that the body of the last token request is written to
	keys   *ringFake
	// objects answer instead, but for keys, where the script has a file of them.
	objects *objectsFake
}

// startCluster starts $API, with kubeconfig for it.
func startCluster(ts *testscript.TestScript) {
	url, authorities := serveTLS(ts, &clusterFake{
		token: ts.Getenv("TOKEN"), record: workFile(ts, "request.json"), keys: stateOf(ts).ring,
		objects: &objectsFake{file: workFile(ts, "cluster.yaml"), variable: ts.Getenv},
	})
	ts.Setenv("API", url)
	write(ts, "cluster.crt", string(authorities))
	write(ts, "kubeconfig", kubeconfig(url, "cluster.crt", "team")+"- {name: team/other, context: {cluster: cluster, user: user, namespace: elsewhere}}\n")
}

func (f *clusterFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Header.Get("Authorization") != "Bearer bearer":
		Refuse(w, metav1.Status{Code: 401, Reason: "Unauthorized", Message: "Unauthorized"})
	case len(path) > 3 && path[3] == "keyrings":
		f.keys.serve(w, r, path[4:])
	case f.objects.has():
		f.objects.ServeHTTP(w, r)
	case len(path) == 4 && path[3] == "workloadidentities":
		serveIdentities(w, r)
	case len(path) == 5 && path[4] == "serviceaccounts":
		Answer(w, http.StatusOK, corev1.ServiceAccountList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccountList"},
			Items:    []corev1.ServiceAccount{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}},
		})
	case len(path) == 6 && path[4] == "serviceaccounts":
		serveAccount(w, path[3], path[5])
	case len(path) == 6 && path[5] == "workloadidentities":
		Answer(w, http.StatusOK, v1alpha1.WorkloadIdentityList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentityList"},
			Items:    []v1alpha1.WorkloadIdentity{{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, {ObjectMeta: metav1.ObjectMeta{Name: "batch"}}},
		})
	case len(path) == 8 && path[5] == "workloadidentities" && path[7] == "token" && r.Method == http.MethodPost:
		f.serveToken(w, r, path[4], path[6])
	default:
		http.NotFound(w, r)
	}
}

// The paths are /api/v1/namespaces/NS/serviceaccounts/NAME and
// /apis/authentication.gardener.cloud/v1alpha1/namespaces/NS/workloadidentities/NAME/token.
func serveAccount(w http.ResponseWriter, namespace, name string) {
	switch name {
	case "worker":
		Answer(w, http.StatusOK, corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-worker"},
		})
	case "hidden":
		Refuse(w, metav1.Status{
			Code: 403, Reason: "Forbidden", Details: &metav1.StatusDetails{Name: name, Kind: "serviceaccounts"},
			Message: `serviceaccounts "hidden" is forbidden: User "jane" cannot get resource "serviceaccounts" in API group "" in the namespace "` + namespace + `"`,
		})
	default:
		Refuse(w, metav1.Status{
			Code: 404, Reason: "NotFound", Details: &metav1.StatusDetails{Name: name, Kind: "serviceaccounts"},
			Message: `serviceaccounts "` + name + `" not found`,
		})
	}
}

func (f *clusterFake) serveToken(w http.ResponseWriter, r *http.Request, namespace, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil || os.WriteFile(f.record, append([]byte(namespace+" "), body...), 0o600) != nil {
		panic("record the request")
	}
	details := &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "workloadidentities", Name: name}
	switch name {
	case "denied":
		Refuse(w, metav1.Status{
			Code: 403, Reason: "Forbidden", Details: details,
			Message: `workloadidentities.authentication.gardener.cloud "denied" is forbidden: User "jane" cannot create resource "workloadidentities/token" in API group "authentication.gardener.cloud" in the namespace "` + namespace + `"`,
		})
	case "unusable":
		Refuse(w, metav1.Status{Code: 403, Reason: "Forbidden", Details: details, Message: `the service account may not use it`})
	case "missing":
		Refuse(w, metav1.Status{Code: 404, Reason: "NotFound", Details: details, Message: `workloadidentities.authentication.gardener.cloud "missing" not found`})
	case "deleted":
		Refuse(w, metav1.Status{Code: 409, Reason: "Conflict", Details: details, Message: `it is being deleted`})
	case "invalid":
		Refuse(w, metav1.Status{Code: 422, Reason: "Invalid", Message: "m", Details: &metav1.StatusDetails{Kind: "TokenRequest", Name: name, Causes: []metav1.StatusCause{
			{Field: "spec.duration", Message: "Invalid value: 1m0s: must not be shorter than 10m0s"},
			{Field: "spec.contextObject.uid", Message: "Required value"},
		}}})
	case "too-short":
		Refuse(w, metav1.Status{Code: 422, Reason: "Invalid", Message: "m", Details: &metav1.StatusDetails{Kind: "TokenRequest", Name: name, Causes: []metav1.StatusCause{
			{Field: "spec.duration", Message: "Invalid value: 1m0s: must not be shorter than 10m0s"},
		}}})
	case "signless":
		w.Header().Set("Retry-After", "10")
		Refuse(w, metav1.Status{
			Code: 503, Reason: "ServiceUnavailable", Details: &metav1.StatusDetails{RetryAfterSeconds: 10, Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}}},
			Message: "no signing key may be used now: no RS256 key is active",
		})
	case "down":
		Refuse(w, metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "service unavailable, and " + f.token + " is in the message"})
	case "uninstalled":
		http.NotFound(w, r)
	default:
		f.grant(w, body, name == "empty")
	}
}

// serveIdentities serves the identities of all namespaces, one on a page, in the path
// /apis/authentication.gardener.cloud/v1alpha1/workloadidentities.
func serveIdentities(w http.ResponseWriter, r *http.Request) {
	if forbidden(w, r, v1alpha1.GroupName, "list", "workloadidentities") {
		return
	}
	all := []v1alpha1.WorkloadIdentity{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mail"}, Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: "azure"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "store"}, Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: "aws"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "unusual"}, Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: "own"}}},
	}
	at := 0
	if next := r.URL.Query().Get("continue"); next != "" {
		at = int(next[0] - '0')
	}
	page := v1alpha1.WorkloadIdentityList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentityList"},
		Items:    all[at : at+1],
	}
	if at+1 < len(all) {
		page.Continue = strconv.Itoa(at + 1)
	}
	Answer(w, http.StatusOK, page)
}

// forbidden denies the user viewer everything but get, the user revoker list, and the user mallory everything.
func forbidden(w http.ResponseWriter, r *http.Request, group, verb, resource string) bool {
	user := r.Header.Get("Impersonate-User")
	if !(user == "viewer" && verb != "get") && !(user == "revoker" && verb == "list") && user != "mallory" {
		return false
	}
	Refuse(w, metav1.Status{
		Code: 403, Reason: "Forbidden", Details: &metav1.StatusDetails{Group: group, Kind: resource},
		Message: resource + ` is forbidden: User "` + user + `" cannot ` + verb + ` resource "` + resource + `" in API group "` + group + `" at the cluster scope`,
	})
	return true
}

func (f *clusterFake) grant(w http.ResponseWriter, body []byte, empty bool) {
	var request v1alpha1.TokenRequest
	if err := json.Unmarshal(body, &request); err != nil {
		panic(err)
	}
	if d := request.Spec.Duration; d != nil && d.Hours() > 48 {
		w.Header().Set("Warning", `299 - "spec.duration: shortened from `+d.Duration.String()+` to the maximum 48h0m0s"`)
	}
	if !empty {
		request.Status.Token = f.token
	}
	w.Header().Set("Cache-Control", "no-store")
	Answer(w, http.StatusCreated, request)
}
