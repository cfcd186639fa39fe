// Package clustertest serves the objects of YAML documents as the API server of a cluster gets and lists them, to tests of the packages
// that read through cluster.API. It never changes an object: the answer to a change is the object as it is.
package clustertest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// Cluster is one cluster.
type Cluster struct {
	// Objects are YAML documents. The stringData of Secrets becomes data.
	//
	// A document of kind Deny has the verb and the resource of requests that are refused, with "namespaces: all" only those for all namespaces, and with
	// a user those that are sent as that user. A document of kind Use has a user, and the identity (NAMESPACE/NAME), verb (use by default) and
	// resource (workloadidentities by default) that a review allows this user.
	Objects string
	// Minor is that of the cluster's version. Empty: that of the newest known.
	Minor string
	// Date is the header of answers. Empty: none.
	Date string
	// ReviewError is what a TokenReview answers.
	ReviewError string
	// Status is the code of every answer, without an object. 0: the answers are those of the objects.
	Status int
}

type object struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	StringData map[string]any    `json:"stringData"`
	whole      map[string]any

	User       string `json:"user"`
	Verb       string `json:"verb"`
	Resource   string `json:"resource"`
	Namespaces string `json:"namespaces"`
	Identity   string `json:"identity"`
}

// asUser is the header by which a user acts as another one.
const asUser = "Impersonate-User"

type server struct {
	Cluster
	objects []object
}

// Open serves a cluster until the test ends.
func Open(t testing.TB, c Cluster) *cluster.API {
	t.Helper()
	handler := testkit.Need(Handler(c))(t)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	api := testkit.Need(cluster.New(&rest.Config{Host: listener.URL, QPS: -1}))(t)
	return api
}

// Handler is the API server of a cluster.
func Handler(c Cluster) (http.Handler, error) {
	s := &server{Cluster: c}
	for document := range strings.SplitSeq("\n"+c.Objects, "\n---\n") {
		var o object
		for _, into := range []any{&o, &o.whole} {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				return nil, fmt.Errorf("%w in %s", err, document)
			}
		}
		if len(o.StringData) > 0 {
			data := map[string]any{}
			for key, value := range o.StringData {
				data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
			}
			o.whole["data"] = data
			delete(o.whole, "stringData")
		}
		s.objects = append(s.objects, o)
	}
	return s, nil
}

// place is what the path of a request names.
type place struct{ group, namespace, resource, name string }

func placeOf(path string) place {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := place{group: "v1"}
	if parts[0] == "apis" {
		at.group, parts = parts[1]+"/"+parts[2], parts[3:]
	} else {
		parts = parts[2:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 { // what a group serves
		return place{group: "v1", resource: "apiresourcelists", name: at.group}
	}
	if at.resource = parts[0]; len(parts) > 1 {
		at.name = parts[1]
	}
	return at
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	if s.Date != "" {
		w.Header().Set("Date", s.Date)
	}
	if s.Status != 0 {
		w.WriteHeader(s.Status)
		return
	}
	if r.URL.Path == "/version" {
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": cmp.Or(s.Minor, "37")})
		return
	}
	at := placeOf(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && s.denied(w, r, "create", at):
	case at.resource == "tokenreviews":
		answer(w, http.StatusCreated, map[string]any{"status": map[string]string{"error": s.ReviewError}})
	case at.resource == "subjectaccessreviews", at.resource == "selfsubjectaccessreviews", at.resource == "localsubjectaccessreviews":
		s.review(w, r)
	case r.Method == http.MethodPost:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, at, "no objects are created")
	case at.name != "" && !s.denied(w, r, "get", at):
		s.get(w, at)
	case at.name == "" && !s.denied(w, r, "list", at):
		s.list(w, r, at)
	}
}

func (s *server) denied(w http.ResponseWriter, r *http.Request, verb string, at place) bool {
	user := r.Header.Get(asUser)
	if !slices.ContainsFunc(s.objects, func(o object) bool {
		return o.Kind == "Deny" && o.User == user && o.Verb == verb && o.Resource == at.resource && (o.Namespaces != "all" || at.namespace == "")
	}) {
		return false
	}
	where := "at the cluster scope"
	if at.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", at.namespace)
	}
	group, _, _ := strings.Cut(at.group, "/")
	refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, at,
		fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s", at.resource, cmp.Or(user, "jane"), verb, at.resource, strings.TrimSuffix(group, "v1"), where))
	return true
}

func (s *server) get(w http.ResponseWriter, at place) {
	for _, o := range s.objects {
		if o.is(at) && o.Metadata.Namespace == at.namespace && o.Metadata.Name == at.name {
			answer(w, http.StatusOK, o.whole)
			return
		}
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, at, fmt.Sprintf("%s %q not found", at.resource, at.name))
}

// list answers with one object at a time: a server may return less than was requested.
func (s *server) list(w http.ResponseWriter, r *http.Request, at place) {
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	byField, fieldErr := fields.ParseSelector(query.Get("fieldSelector"))
	if err = cmp.Or(err, fieldErr); err != nil || query.Get("limit") == "" {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, at, fmt.Sprintf("%v; there may be tens of thousands of %s: request a page", err, at.resource))
		return
	}
	items := []any{}
	for _, o := range s.objects {
		if o.is(at) && (at.namespace == "" || o.Metadata.Namespace == at.namespace) && byLabel.Matches(labels.Set(o.Metadata.Labels)) && byField.Matches(fieldsOf(o.whole)) {
			items = append(items, o.whole)
		}
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	to, next := min(from+1, len(items)), ""
	if to < len(items) {
		next = strconv.Itoa(to)
	}
	answer(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": at.group, "metadata": map[string]any{"continue": next}, "items": items[from:to]})
}

func (s *server) review(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			User               string
			ResourceAttributes struct{ Namespace, Verb, Resource, Name string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, place{}, err.Error())
		return
	}
	asked, user := review.Spec.ResourceAttributes, cmp.Or(review.Spec.User, r.Header.Get(asUser))
	allowed := slices.ContainsFunc(s.objects, func(o object) bool {
		return o.Kind == "Use" && o.User == user && o.Identity == asked.Namespace+"/"+asked.Name &&
			cmp.Or(o.Verb, "use") == asked.Verb && cmp.Or(o.Resource, "workloadidentities") == asked.Resource
	})
	answer(w, http.StatusCreated, map[string]any{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": allowed}})
}

func (o object) is(at place) bool {
	return o.APIVersion == at.group && resourceOf(o.Kind) == at.resource
}

func resourceOf(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	if strings.HasSuffix(lower, "s") {
		return lower + "es"
	}
	return lower + "s"
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

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, at place, message string) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: message, Details: &metav1.StatusDetails{Kind: at.resource, Name: at.name},
	})
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // a client that went away has no use for it
}
