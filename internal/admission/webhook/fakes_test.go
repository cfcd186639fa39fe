package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

const agent = "system:serviceaccount:credence-system:credence-agent"

// cluster is all sources: its content can be changed between requests. A resource in outages fails with that error.
type cluster struct {
	mu         sync.Mutex
	accounts   map[string]*corev1.ServiceAccount
	identities map[string]*v1alpha1.WorkloadIdentity
	profiles   map[string]*profiles.ServiceAccountProfile
	templates  map[string]*profiles.SecurityContextTemplate
	classes    map[string]*nodev1.RuntimeClass
	labels     map[string]string    // of the namespace orchard
	delivery   string               // of namespaces that do not choose
	specs      map[string]gmsa.Spec // those that the watch has shown
	unseen     map[string]gmsa.Spec // those that the API has, where they are not the same
	gmsa       webhook.GMSA
	pods       []corev1.Pod
	workload   string          // as the API has it; empty: none
	reads      atomic.Int64    // of specs
	allowed    map[string]bool // user/identity
	outages    map[string]error
	reviews    atomic.Int64
	exceeded   string // why Quotas allow nothing
	asked      []identityv1alpha1.QuotaReviewSpec
	now        time.Time
	log        bytes.Buffer
}

func newCluster() *cluster {
	c := &cluster{accounts: map[string]*corev1.ServiceAccount{}, identities: map[string]*v1alpha1.WorkloadIdentity{}, classes: map[string]*nodev1.RuntimeClass{},
		allowed: map[string]bool{}, outages: map[string]error{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = "orchard", "app"
	account.Annotations = map[string]string{v1alpha1.AnnotationAccountIdentities: "banana"}
	c.accounts["orchard/app"] = account
	wi := &v1alpha1.WorkloadIdentity{}
	wi.Namespace, wi.Name = "orchard", "banana"
	wi.Spec.TargetSystem = v1alpha1.TargetSystem{Type: "aws", ProviderConfig: &runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/picker"}`)}}
	c.identities["orchard/banana"] = wi
	c.specs, c.unseen = map[string]gmsa.Spec{}, map[string]gmsa.Spec{}
	c.allowed["system:serviceaccount:orchard:app/banana"] = true
	return c
}

func (c *cluster) handler() http.Handler {
	return webhook.New(webhook.Needs{
		ServiceAccounts: accounts{c}, Profiles: profiled{c}, Identities: identities{c}, RuntimeClasses: classes{c}, Namespaces: namespaces{c}, Delivery: c.delivery, Pods: listed{c}, CredentialSpecs: specs{c}, Workloads: stored{c}, GMSA: c.gmsa, Quotas: limits{c}, Authorizer: c, Adapters: targets.For, Agent: agent,
		Log: slog.New(slog.NewTextHandler(&c.log, nil)), Now: func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now },
	})
}

func get[T any](c *cluster, objects map[string]T, resource, key string) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	object, found := objects[key]
	if err := c.outages[resource]; err != nil {
		return object, err
	}
	if !found {
		return object, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, key)
	}
	return object, nil
}

type accounts struct{ *cluster }

func (a accounts) Get(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return get(a.cluster, a.accounts, "serviceaccounts", namespace+"/"+name)
}

type identities struct{ *cluster }

func (i identities) Get(_ context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	return get(i.cluster, i.identities, "workloadidentities", namespace+"/"+name)
}

type profiled struct{ *cluster }

func (p profiled) Profile(_ context.Context, namespace, name string) (*profiles.ServiceAccountProfile, error) {
	return get(p.cluster, p.profiles, "serviceaccountprofiles", namespace+"/"+name)
}

func (p profiled) Template(_ context.Context, name string) (*profiles.SecurityContextTemplate, error) {
	return get(p.cluster, p.templates, "securitycontexttemplates", name)
}

type classes struct{ *cluster }

func (r classes) Get(_ context.Context, name string) (*nodev1.RuntimeClass, error) {
	return get(r.cluster, r.classes, "runtimeclasses", name)
}

type namespaces struct{ *cluster }

func (n namespaces) Get(_ context.Context, name string) (*corev1.Namespace, error) {
	return get(n.cluster, map[string]*corev1.Namespace{"orchard": {ObjectMeta: metav1.ObjectMeta{Name: "orchard", Labels: n.labels}}}, "namespaces", name)
}

type listed struct{ *cluster }

func (l listed) List(_ context.Context, namespace, account string, limit int64) ([]corev1.Pod, bool, error) {
	var found []corev1.Pod
	for _, pod := range l.pods {
		if pod.Namespace == namespace && pod.Spec.ServiceAccountName == account {
			found = append(found, pod)
		}
	}
	shown := min(len(found), int(limit))
	return found[:shown], shown < len(found), l.outages["pods"]
}

// limits refuse what the cluster has a text for, and remember all reviews.
type limits struct{ *cluster }

func (l limits) Review(_ context.Context, spec identityv1alpha1.QuotaReviewSpec) (*identityv1alpha1.QuotaReviewStatus, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, spec)
	return &identityv1alpha1.QuotaReviewStatus{Allowed: l.exceeded == "", Refused: l.exceeded}, l.outages["quotareviews"]
}

type stored struct{ *cluster }

func (s stored) Get(_ context.Context, resource, _, name string) ([]byte, error) {
	if s.workload == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
	}
	return []byte(s.workload), nil
}

type specs struct{ *cluster }

func (s specs) Known(name string) (gmsa.Spec, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, known := s.specs[name]
	return spec, known
}

func (s specs) Read(_ context.Context, name string) (gmsa.Spec, error) {
	s.cluster.reads.Add(1)
	if err := s.outages["gmsacredentialspecs"]; err != nil {
		return gmsa.Spec{}, err
	}
	if name == "" {
		return gmsa.Spec{}, errors.New("name is required") // as by the API's client
	}
	if spec, known := s.unseen[name]; known {
		return spec, nil
	}
	return s.specs[name], nil
}

func (c *cluster) Review(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	c.reviews.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.outages["reviews"]; err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	a := spec.ResourceAttributes
	right := a.Verb == "use" && a.Group == v1alpha1.GroupName && a.Resource == "workloadidentities" && a.Namespace == "orchard" && len(spec.Groups) == 2
	if a.Group == windowsv1.GroupName {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: a.Verb == "use" && a.Resource == windowsv1.ResourceName && c.allowed[spec.User+"/"+a.Name+"@"+a.Namespace], Reason: "denied here"}, nil
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: right && c.allowed[spec.User+"/"+a.Name]}, nil
}

// podJSON is a pod of the service account app.
const podJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"picker","namespace":"orchard"},"spec":{"serviceAccountName":"app","containers":[{"name":"main","image":"picker"}]}}`

type sent struct {
	resource  string // such as /v1/pods
	sub       string
	operation admissionv1.Operation
	user      string
	object    string
	old       string
}

func (s sent) body(t testing.TB) []byte {
	t.Helper()
	text := func(v string) json.RawMessage {
		if v == "" {
			return json.RawMessage("null")
		}
		return json.RawMessage(v)
	}
	group, version, resource := "", "v1", s.resource
	switch resource {
	case "pods", "secrets", "bindings", "serviceaccounts":
	case "gmsacredentialspecs":
		group = windowsv1.GroupName
	default:
		group = "apps"
	}
	if s.operation == "" {
		s.operation = admissionv1.Create
	}
	body := testkit.Need(json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "uid-1", "resource": map[string]string{"group": group, "version": version, "resource": resource}, "subResource": s.sub, "namespace": "orchard", "name": "picker",
		"operation": s.operation, "userInfo": map[string]any{"username": s.user, "groups": []string{"g"}}, "object": text(s.object), "oldObject": text(s.old), "laterField": 1,
	}}))(t)
	return body
}

// post sends a body; the timeout is the longest one that the API server has, unless the path has another.
func post(handler http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	if !strings.Contains(path, "?") {
		path += "?timeout=30s"
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// ask posts a review, and returns the answer in the form that the API server reads.
func ask(t testing.TB, handler http.Handler, path string, s sent) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(handler, path, s.body(t))
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	return answered(t, w.Body.Bytes())
}

func answered(t testing.TB, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	testkit.Must(t, json.Unmarshal(body, &review))
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || review.Response == nil || review.Response.UID == "" || review.Request != nil {
		t.Fatalf("not what the API server takes: %s", body)
	}
	response := review.Response
	if response.Allowed == (response.Result != nil) || (response.PatchType != nil) != (len(response.Patch) > 0) || !response.Allowed && response.Patch != nil {
		t.Fatalf("the answer contradicts itself: %s", body)
	}
	if response.Result != nil && (response.Result.Message == "" || response.Result.Code < 400) {
		t.Fatalf("a refusal without code or message: %s", body)
	}
	return response
}

func applied(t testing.TB, object string, response *admissionv1.AdmissionResponse) string {
	t.Helper()
	if response.Patch == nil {
		return object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	testkit.Must(t, err)
	out, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("apply %s to %s: %v", response.Patch, object, err)
	}
	return string(out)
}
