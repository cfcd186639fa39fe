package clitest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// objectsFake serves the objects in a file of YAML documents, as an API server would get and list them: with selectors,
// pages, and what a user may not do; and keeps those that a request writes. Documents of kind Deny set that: user, verb, resource, and with "namespaces: all" only
// for requests that are for all of them. Documents of kind Use list which user may use which identity, or
// the object of their verb and resource. $NAME of a script's
// variables is replaced in the file, and stringData becomes data. No user may create pods. Two more files of
// the script are settings: server-date is what the server takes for the time, page limits pages to one object.
type objectsFake struct {
	file string
	// variable returns the value of a variable of the script.
	variable func(string) string

	reading sync.Mutex
	text    string // that the objects were read from: a command sends many requests for one
	read    []fakeObject
	renewed atomic.Int64 // tokens
}

type fakeObject struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   fakeMetadata   `json:"metadata"`
	StringData map[string]any `json:"stringData"`
	whole      map[string]any

	User       string `json:"user"`
	Verb       string `json:"verb"`
	Resource   string `json:"resource"`
	Namespaces string `json:"namespaces"`
	Identity   string `json:"identity"`
}

type fakeMetadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
}

// setting reads a file that the script has put beside the objects, or "".
func (f *objectsFake) setting(name string) string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(f.file), name))
	return strings.TrimSpace(string(text))
}

// has reports whether there is a file, so that the fake is in use.
func (f *objectsFake) has() bool {
	_, err := os.Stat(f.file)
	return err == nil
}

func (f *objectsFake) objects() []fakeObject {
	content, err := os.ReadFile(f.file)
	if err != nil {
		panic(err)
	}
	text := os.Expand(string(content), f.variable)
	f.reading.Lock()
	defer f.reading.Unlock()
	if text == f.text {
		return f.read
	}
	var objects []fakeObject
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object fakeObject
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			panic(fmt.Sprintf("%v in %s", err, document))
		}
		if err := yaml.Unmarshal([]byte(document), &object.whole); err != nil {
			panic(err)
		}
		if len(object.StringData) > 0 {
			data := map[string]any{}
			for key, value := range object.StringData {
				data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
			}
			object.whole["data"] = data
			delete(object.whole, "stringData")
		}
		objects = append(objects, object)
	}
	f.text, f.read = text, objects
	return objects
}

func fakeResource(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	if strings.HasSuffix(lower, "s") {
		return lower + "es"
	}
	return lower + "s"
}

// fakeKind is the kind of a resource that is listed.
func fakeKind(resource string) string {
	for _, kind := range []string{"WorkloadIdentity", "Secret", "Pod", "Event", "Node", "Lease", "Deployment", "ServiceAccount", "Namespace", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccountProfile", "SecretBinding", "CredentialsBinding", "WorkloadCluster", "ContextKind", "ContextDelivery", "Shoot", "BackupBucket", "EndpointSlice", "GMSACredentialSpec",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding"} {
		if fakeResource(kind) == resource {
			return kind
		}
	}
	panic("add the kind of " + resource)
}

func (f *objectsFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer bearer" {
		Refuse(w, metav1.Status{Code: 401, Reason: "Unauthorized", Message: "Unauthorized"})
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path[0] == "version" {
		w.Header().Set("Date", f.setting("server-date"))
		Answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "37"})
		return
	}
	if len(path) == 1 {
		f.serveGroups(w, path[0])
		return
	}
	group := "v1"
	if path[0] == "apis" {
		group, path = path[1]+"/"+path[2], path[3:]
	} else {
		path = path[2:]
	}
	namespace := ""
	if len(path) > 2 && path[0] == "namespaces" {
		namespace, path = path[1], path[2:]
	}
	switch {
	case len(path) == 0: // what a group serves
		f.get(w, r, "v1", "", "apiresourcelists", group)
	case path[0] == "subjectaccessreviews", path[0] == "selfsubjectaccessreviews", path[0] == "localsubjectaccessreviews":
		f.review(w, r)
	case path[0] == "selfsubjectrulesreviews":
		f.reviewRules(w, r)
	case path[0] == "selfsubjectreviews":
		Answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{
			"username": r.Header.Get("Impersonate-User"), "groups": []string{"system:authenticated"},
		}}})
	case path[0] == "tokenreviews":
		Answer(w, http.StatusCreated, map[string]any{"status": map[string]string{"error": f.setting("review-error")}})
	case r.Method == http.MethodPost && path[0] == "pods":
		Refuse(w, metav1.Status{
			Code: 403, Reason: "Forbidden", Details: &metav1.StatusDetails{Kind: "pods"},
			Message: fmt.Sprintf("pods is forbidden: User %q cannot create resource \"pods\" in API group \"\" in the namespace %q", r.Header.Get("Impersonate-User"), namespace),
		})
	case r.Method == http.MethodPost && len(path) == 1:
		f.write(w, r, place{group, namespace, path[0], ""})
	case (r.Method == http.MethodPut || r.Method == http.MethodPatch) && len(path) == 2:
		f.write(w, r, place{group, namespace, path[0], path[1]})
	case len(path) == 2:
		f.get(w, r, group, namespace, path[0], path[1])
	default:
		f.list(w, r, group, namespace, path[0])
	}
}

func (f *objectsFake) denied(w http.ResponseWriter, r *http.Request, group, verb, resource, namespace string) bool {
	user := r.Header.Get("Impersonate-User")
	for _, o := range f.objects() {
		if o.Kind != "Deny" || o.User != user || o.Verb != verb || o.Resource != resource || o.Namespaces == "all" && namespace != "" {
			continue
		}
		where := "at the cluster scope"
		if namespace != "" {
			where = `in the namespace "` + namespace + `"`
		}
		name, _, _ := strings.Cut(group, "/")
		Refuse(w, metav1.Status{
			Code: 403, Reason: "Forbidden", Details: &metav1.StatusDetails{Kind: resource},
			Message: fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s", resource, user, verb, resource, strings.TrimSuffix(name, "v1"), where),
		})
		return true
	}
	return false
}

func (f *objectsFake) get(w http.ResponseWriter, r *http.Request, group, namespace, resource, name string) {
	if f.denied(w, r, group, "get", resource, namespace) {
		return
	}
	for _, o := range f.objects() {
		if o.APIVersion == group && fakeResource(o.Kind) == resource && o.Metadata.Namespace == namespace && o.Metadata.Name == name {
			Answer(w, http.StatusOK, o.whole)
			return
		}
	}
	Refuse(w, metav1.Status{
		Code: 404, Reason: "NotFound", Details: &metav1.StatusDetails{Kind: resource, Name: name},
		Message: fmt.Sprintf("%s %q not found", resource, name),
	})
}

func (f *objectsFake) list(w http.ResponseWriter, r *http.Request, group, namespace, resource string) {
	if f.denied(w, r, group, "list", resource, namespace) {
		return
	}
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	items, kind := []any{}, fakeKind(resource)
	for _, o := range f.objects() {
		if o.APIVersion == group && fakeResource(o.Kind) == resource && (namespace == "" || o.Metadata.Namespace == namespace) &&
			byLabel.Matches(labels.Set(o.Metadata.Labels)) && byField.Matches(fieldsOf(o.whole)) {
			items = append(items, o.whole)
		}
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil && resource != "workloadidentities" {
		Refuse(w, metav1.Status{Code: 400, Reason: "BadRequest", Message: "there may be tens of thousands of " + resource + ": request a page"})
		return
	}
	if f.setting("page") != "" && err == nil {
		limit = 1 // a server may return less than was requested
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	to, next := len(items), ""
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	Answer(w, http.StatusOK, map[string]any{"kind": kind + "List", "apiVersion": group, "metadata": map[string]any{"continue": next}, "items": items[from:to]})
}

// fieldsOf are the values of an object by their paths, as field selectors name them.
func fieldsOf(object map[string]any) fields.Set {
	set := fields.Set{}
	var walk func(prefix string, value any)
	walk = func(prefix string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				walk(strings.TrimPrefix(prefix+"."+name, "."), member)
			}
		case string:
			set[prefix] = v
		}
	}
	walk("", object)
	return set
}

// review answers a SubjectAccessReview.
func (f *objectsFake) review(w http.ResponseWriter, r *http.Request) {
	namespace, resource := "", "subjectaccessreviews"
	if parts := strings.Split(r.URL.Path, "/"); parts[len(parts)-1] == "localsubjectaccessreviews" {
		namespace, resource = parts[5], "localsubjectaccessreviews"
	}
	if f.denied(w, r, "authorization.k8s.io/v1", "create", resource, namespace) {
		return
	}
	var review struct {
		Spec struct {
			User               string
			ResourceAttributes struct{ Namespace, Verb, Group, Resource, Name string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		panic(err)
	}
	asked := review.Spec.ResourceAttributes
	user := cmp.Or(review.Spec.User, r.Header.Get("Impersonate-User")) // of a review of oneself
	allowed := slices.ContainsFunc(f.objects(), func(o fakeObject) bool {
		return o.Kind == "Use" && o.User == user && o.Identity == asked.Namespace+"/"+asked.Name && asked.Verb == cmp.Or(o.Verb, "use") && asked.Resource == cmp.Or(o.Resource, "workloadidentities")
	})
	Answer(w, http.StatusCreated, map[string]any{
		"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": allowed},
	})
}

// startSecondCluster starts a cluster whose objects are in the file identities.yaml, with identity.kubeconfig for it.
func startSecondCluster(ts *testscript.TestScript) {
	url, authorities := serveTLS(ts, &objectsFake{file: workFile(ts, "identities.yaml"), variable: ts.Getenv})
	write(ts, "second.crt", string(authorities))
	write(ts, "identity.kubeconfig", kubeconfig(url, "second.crt", "garden"))
}

// reviewRules answers a SelfSubjectRulesReview from the documents of kind Use.
func (f *objectsFake) reviewRules(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectRulesReview
	decode(r, &review)
	for _, o := range f.objects() {
		namespace, name, _ := strings.Cut(o.Identity, "/")
		if o.Kind == "Use" && o.User == r.Header.Get("Impersonate-User") && namespace == review.Spec.Namespace {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: []string{cmp.Or(o.Verb, "use")}, APIGroups: []string{"*"}, Resources: []string{cmp.Or(o.Resource, "workloadidentities")}, ResourceNames: []string{name},
			})
		}
	}
	Answer(w, http.StatusCreated, review)
}
