package selftokens_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/selftokens"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

var (
	now      = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	banana   = types.NamespacedName{Namespace: "fruit", Name: "banana"}
	resource = v1alpha1.Resource("workloadidentities")
)

// world is two clusters in which all is well: a pod on a node, whose account may use the identity.
type world struct {
	review     authenticationv1.TokenReviewStatus
	pod        *corev1.Pod
	allowed    authorizationv1.SubjectAccessReviewStatus
	broken     []string // the resources that the workload cluster answers with an error
	forbidden  bool     // that error is one of a missing right
	unread     error    // of the identity
	untoken    error    // of its token
	subject    string
	anonymous  bool
	namespaces []string
	registry   *prometheus.Registry // of the metrics of the last handler

	mu        sync.Mutex
	calls     []string // requests to the clusters
	audiences []string
	context   *v1alpha1.ContextObject
	uid       types.UID
	lifetime  time.Duration
	log       bytes.Buffer
}

func newWorld() *world {
	return &world{
		review: authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{v1alpha1.AudienceAgent}, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:fruit:web", UID: "uid-of-web", Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"web-0"}, "authentication.kubernetes.io/pod-uid": {"uid-of-pod"},
				"authentication.kubernetes.io/node-name": {"node-1"}, "authentication.kubernetes.io/node-uid": {"uid-of-node"},
			}}},
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: "web-0", UID: "uid-of-pod"},
			Spec: corev1.PodSpec{ServiceAccountName: "web", NodeName: "node-1"}},
		allowed: authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		subject: "gardener.cloud:workloadidentity:fruit:banana:uid-of-banana",
	}
}

func (w *world) called(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, what)
}

// Read implements selftokens.Identities.
func (w *world) Read(context.Context, string, string) (*v1alpha1.WorkloadIdentity, error) {
	w.called("identity")
	wi := &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: "banana", UID: "uid-of-banana"}}
	wi.Spec.TargetSystem.Type = "aws"
	wi.Status.Sub = "gardener.cloud:workloadidentity:fruit:banana:uid-of-banana"
	return wi, w.unread
}

// Token implements selftokens.Tokens.
func (w *world) Token(_ context.Context, _ types.NamespacedName, uid types.UID, _ types.NamespacedName, object *v1alpha1.ContextObject, lifetime time.Duration) (identity.Token, error) {
	w.called("token")
	w.context, w.uid, w.lifetime = object, uid, lifetime
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d,"jti":"id-of-token"}`, w.subject, now.Unix(), now.Add(time.Hour).Unix())
	return identity.NewToken(encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("s"))), w.untoken
}

func (w *world) handler() http.Handler { return selftokens.New(w.config()) }

func (w *world) config() selftokens.Config {
	client := fake.NewClientset()
	if w.pod != nil {
		if err := client.Tracker().Add(w.pod); err != nil {
			panic(err)
		}
	}
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.GetResource().Resource
		w.called(name)
		if slices.Contains(w.broken, name) {
			err := errors.New("the API is away")
			if name == "tokenreviews" {
				err = errors.New("the API is away, and the request had pod-token")
			}
			if w.forbidden {
				err = apierrors.NewForbidden(schema.GroupResource{Resource: name}, "", errors.New("the agent may not, and the request had pod-token"))
			}
			return true, nil, err
		}
		switch create, _ := action.(clienttesting.CreateAction); name {
		case "tokenreviews":
			w.audiences = create.GetObject().(*authenticationv1.TokenReview).Spec.Audiences
			return true, &authenticationv1.TokenReview{Status: w.review}, nil
		case "subjectaccessreviews":
			return true, &authorizationv1.SubjectAccessReview{Status: w.allowed}, nil
		}
		return false, nil, nil
	})
	w.registry = prometheus.NewRegistry()
	return selftokens.Config{
		Reviews: client.AuthenticationV1().TokenReviews(), Pods: client.CoreV1(), Rights: authority.Cluster(client.AuthorizationV1().SubjectAccessReviews()),
		Identities: w, Tokens: w, NamesAccounts: !w.anonymous, Namespaces: w.namespaces, Clock: testingclock.NewFakeClock(now), Recorder: selftokens.NewRecorder(w.registry), Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
}

// ask requests a token as the driver of a node does.
func (w *world) ask(t *testing.T) (v1alpha1.TokenRequestStatus, error) {
	t.Helper()
	server := httptest.NewTLSServer(w.handler())
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	got, err := workloadidentities.NewSelfTokens(config).Token(t.Context(), banana, identity.NewToken("pod-token"))
	if log := w.log.String(); strings.Contains(log, "pod-token") || strings.Contains(log, "eyJ") {
		t.Errorf("a token is in the log: %s", log)
	}
	return got, err
}

// A pod gets the token with which the agent answers for it, and the log has the pod, its node, and the token's ID.
func TestPodGetsToken(t *testing.T) {
	w := newWorld()
	got, err := w.ask(t)
	if err != nil || !strings.HasPrefix(got.Token, "eyJ") || !got.ExpirationTimestamp.Time.Equal(now.Add(time.Hour)) || got.TargetSystem == nil || got.TargetSystem.Type != "aws" {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := (v1alpha1.ContextObject{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "fruit", Name: "web", UID: "uid-of-web"}); w.context == nil || *w.context != want {
		t.Errorf("the context is %+v, want %+v", w.context, want)
	}
	if w.uid != "uid-of-banana" || w.lifetime != 0 || !slices.Equal(w.audiences, []string{"agent.identity.credence.dev"}) {
		t.Errorf("requested of uid %s for %s, reviewed for the audiences %q", w.uid, w.lifetime, w.audiences)
	}
	for _, want := range []string{"pod=web-0 podUID=uid-of-pod node=node-1 nodeUID=uid-of-node", "account=fruit/web", "identity=fruit/banana", "jti=id-of-token"} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, &w.log)
		}
	}
	// An agent that is not of a joined cluster asserts no accounts.
	w = newWorld()
	w.anonymous = true
	if _, err := w.ask(t); err != nil || w.context != nil {
		t.Errorf("not joined: context %+v, %v", w.context, err)
	}
}

// metric is the value of a series with one label, or of one without: of a histogram, its count.
func (w *world) metric(t *testing.T, name, label string) float64 {
	t.Helper()
	families := testkit.Need(w.registry.Gather())(t)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("there is no series %s of %q", name, label)
	return 0
}

func TestPodGetsNone(t *testing.T) {
	extra := func(w *world, key string, values ...string) {
		w.review.User.Extra["authentication.kubernetes.io/"+key] = values
	}
	deleted := func(w *world, ago time.Duration) {
		grace := int64(30)
		w.pod.DeletionTimestamp, w.pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-ago)}, &grace
	}
	answer := func(code int, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "the identity cluster's words"}}
	}
	const last = "the last call before the refusal"
	for name, test := range map[string]struct {
		change func(*world)
		code   int
		words  string
		last   string
	}{
		"a token that is not valid":        {func(w *world) { w.review.Authenticated = false }, 401, "not valid for the audience", "tokenreviews"},
		"a token for the API server":       {func(w *world) { w.review.Audiences = []string{"https://kubernetes.default.svc"} }, 401, "not valid for the audience", "tokenreviews"},
		"an API that knows no audiences":   {func(w *world) { w.review.Audiences = nil }, 401, "not valid for the audience", "tokenreviews"},
		"no review":                        {func(w *world) { w.broken = []string{"tokenreviews"} }, 503, "does not review", "tokenreviews"},
		"the agent may not review":         {func(w *world) { w.broken, w.forbidden = []string{"tokenreviews"}, true }, 503, "installs deploy/options/agent-pods.yaml", "tokenreviews"},
		"a user":                           {func(w *world) { w.review.User.Username = "jane" }, 403, "is not a service account", "tokenreviews"},
		"a node":                           {func(w *world) { w.review.User.Username = "system:node:node-1" }, 403, "is not a service account", "tokenreviews"},
		"no account":                       {func(w *world) { w.review.User.Username = "system:serviceaccount:fruit:" }, 403, "is not a service account", "tokenreviews"},
		"an account without uid":           {func(w *world) { w.review.User.UID = "" }, 403, "states no uid", "tokenreviews"},
		"a token without pod":              {func(w *world) { extra(w, "pod-name") }, 403, "is not bound to a pod", "tokenreviews"},
		"a token with two pods":            {func(w *world) { extra(w, "pod-uid", "a", "b") }, 403, "is not bound to a pod", "tokenreviews"},
		"a token without node":             {func(w *world) { extra(w, "node-name") }, 403, "names no node", "tokenreviews"},
		"a namespace of another agent":     {func(w *world) { w.namespaces = []string{"orchard"} }, 403, "--namespaces lists others", "tokenreviews"},
		"an account that may not use it":   {func(w *world) { w.allowed.Allowed = false }, 403, "may not use the WorkloadIdentity", "subjectaccessreviews"},
		"denied":                           {func(w *world) { w.allowed.Denied = true }, 403, "may not use the WorkloadIdentity", "subjectaccessreviews"},
		"rights not reviewed":              {func(w *world) { w.broken = []string{"subjectaccessreviews"} }, 503, "review whether", "subjectaccessreviews"},
		"rights undecided":                 {func(w *world) { w.allowed = authorizationv1.SubjectAccessReviewStatus{EvaluationError: "webhook"} }, 503, "webhook", "subjectaccessreviews"},
		"the pod is gone":                  {func(w *world) { w.pod = nil }, 403, "does not exist any more", "pods"},
		"the pod is not read":              {func(w *world) { w.broken = []string{"pods"} }, 503, "can't be read", "pods"},
		"another pod of the name":          {func(w *world) { w.pod.UID = "later" }, 403, "deleted and created again", "pods"},
		"another node":                     {func(w *world) { w.pod.Spec.NodeName = "node-2" }, 403, `is on node "node-2"`, "pods"},
		"another account":                  {func(w *world) { w.pod.Spec.ServiceAccountName = "other" }, 403, "runs as service account", "pods"},
		"the pod has ended":                {func(w *world) { w.pod.Status.Phase = corev1.PodSucceeded }, 403, "has ended", "pods"},
		"past its grace period":            {func(w *world) { deleted(w, time.Second) }, 403, "was deleted", "pods"},
		"no identity":                      {func(w *world) { w.unread = apierrors.NewNotFound(resource, "banana") }, 404, "not found", "identity"},
		"no API of identities":             {func(w *world) { w.unread = answer(404, metav1.StatusReasonNotFound) }, 503, "the identity cluster", "identity"},
		"no identity cluster":              {func(w *world) { w.unread = errors.New("connection refused") }, 503, "the identity cluster", "identity"},
		"the agent may not":                {func(w *world) { w.untoken = answer(403, metav1.StatusReasonForbidden) }, 403, "the agent may not get tokens", "token"},
		"the agent's credentials are over": {func(w *world) { w.untoken = answer(401, metav1.StatusReasonUnauthorized) }, 503, "this cluster left the identity cluster, or its account there was deleted", "token"},
		"too many requests":                {func(w *world) { w.untoken = apierrors.NewTooManyRequests("later", 7) }, 429, "later", "token"},
		"the identity was made anew":       {func(w *world) { w.untoken = answer(409, metav1.StatusReasonConflict) }, 409, "the identity cluster's words", "token"},
		"an internal error":                {func(w *world) { w.untoken = answer(500, metav1.StatusReasonInternalError) }, 503, "the identity cluster", "token"},
		"a token of another identity":      {func(w *world) { w.subject = "other" }, 503, "is not a token of WorkloadIdentity", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.change(w)
			got, err := w.ask(t)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || int(status.Status().Code) != test.code || !strings.Contains(err.Error(), test.words) || got.Token != "" {
				t.Errorf("%+v, %v, want %d with %q", got, err, test.code, test.words)
			}
			if w.calls[len(w.calls)-1] != test.last {
				t.Errorf("%s is of %q, want %s", last, w.calls, test.last)
			}
			code := strconv.Itoa(test.code)
			if test.code == 409 {
				code = "other"
			}
			if got := w.metric(t, "credence_agent_pods_requests_total", code); got != 1 {
				t.Errorf("%g requests are counted as %s, want 1", got, code)
			}
			if test.code == 404 && failures.Of(err) != failures.IdentityMissing {
				t.Errorf("the driver takes it for %s", failures.Of(err))
			}
			if seconds, ok := apierrors.SuggestsClientDelay(err); test.code == 429 && (!ok || seconds != 7) {
				t.Errorf("again after %d seconds, %v", seconds, ok)
			}
		})
	}
	// A pod within its grace period may still need its token.
	w := newWorld()
	deleted(w, -time.Second)
	if _, err := w.ask(t); err != nil || w.metric(t, "credence_agent_pods_requests_total", "201") != 1 {
		t.Errorf("within its grace period: %v, or it is not counted", err)
	}
}

// A malformed request is refused before any cluster is called.
func TestRequests(t *testing.T) {
	const path = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/fruit/workloadidentities/banana/selftoken"
	request := func(rest string) string {
		return `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest"` + rest + `}`
	}
	for name, test := range map[string]struct {
		method, path, authorization, body string
		code                              int
	}{
		"all is well":         {"POST", path, "Bearer pod-token", request(``), 201},
		"its own name":        {"POST", path, "bearer pod-token", request(`,"metadata":{"name":"banana","namespace":"fruit"},"spec":{},"status":{"token":"x"}`), 201},
		"no credentials":      {"POST", path, "", request(``), 401},
		"a password":          {"POST", path, "Basic cG9kOnRva2Vu", request(``), 401},
		"an endless token":    {"POST", path, "Bearer " + strings.Repeat("a", 17<<10), request(``), 401},
		"get":                 {"GET", path, "Bearer pod-token", "", 405},
		"another subresource": {"POST", strings.Replace(path, "selftoken", "token", 1), "Bearer pod-token", request(``), 404},
		"a path in the name":  {"POST", strings.Replace(path, "banana", "..%2fbanana", 1), "Bearer pod-token", request(``), 400},
		"a dry run":           {"POST", path + "?dryRun=All", "Bearer pod-token", request(``), 400},
		"a lifetime":          {"POST", path, "Bearer pod-token", request(`,"spec":{"duration":"48h"}`), 400},
		"a context":           {"POST", path, "Bearer pod-token", request(`,"spec":{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"other","namespace":"fruit","uid":"u"}}`), 400},
		"a binding":           {"POST", path, "Bearer pod-token", request(`,"metadata":{"annotations":{"a":"b"}}`), 400},
		"another name":        {"POST", path, "Bearer pod-token", request(`,"metadata":{"name":"cherry"}`), 400},
		"another namespace":   {"POST", path, "Bearer pod-token", request(`,"metadata":{"namespace":"orchard"}`), 400},
		"an unknown field":    {"POST", path, "Bearer pod-token", request(`,"spec":{"audiences":["mine"]}`), 400},
		"another kind":        {"POST", path, "Bearer pod-token", `{"apiVersion":"v1","kind":"Pod"}`, 400},
		"no JSON":             {"POST", path, "Bearer pod-token", "token", 400},
		"an endless body":     {"POST", path, "Bearer pod-token", request(`,"x":"` + strings.Repeat("a", 17<<10) + `"`), 400},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			sent := httptest.NewRequestWithContext(t.Context(), test.method, test.path, io.NopCloser(strings.NewReader(test.body)))
			if test.authorization != "" {
				sent.Header.Set("Authorization", test.authorization)
			}
			got := httptest.NewRecorder()
			w.handler().ServeHTTP(got, sent)
			if got.Code != test.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, test.code)
			}
			if asked := len(w.calls) > 0; asked != (test.code == 201) {
				t.Errorf("the clusters were called: %q", w.calls)
			}
			if test.code == 201 && got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", got.Header())
			}
		})
	}
}

// waits are reviews of tokens and of rights, of a world, that report when they have started, and end when they are let.
type waits struct {
	authenticationclient.TokenReviewInterface
	*world
	started chan struct{}
	release chan struct{}
}

func (w waits) Create(context.Context, *authenticationv1.TokenReview, metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	w.started <- struct{}{}
	<-w.release
	return &authenticationv1.TokenReview{Status: w.review}, nil
}

func (w waits) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	w.started <- struct{}{}
	<-w.release
	return authorizationv1.SubjectAccessReviewStatus{}, nil
}

// The requests that are worked on are bounded: those of pods whose tokens are not reviewed yet, and those of each namespace.
func TestManyRequests(t *testing.T) {
	reviewed := func(c *selftokens.Config, w waits) { c.Reviews, c.Namespaces = w, []string{"orchard"} }
	for name, test := range map[string]struct {
		bound     string
		most      int
		addresses string
		wait      func(*selftokens.Config, waits)
	}{
		"of all":         {"all", 64, "192.0.2.%d:1234", reviewed},
		"of an address":  {"address", 16, "[2001:db8::1]:%d", reviewed},
		"of a namespace": {"namespace", 16, "192.0.2.%d:1234", func(c *selftokens.Config, w waits) { c.Rights = w }},
	} {
		t.Run(name, func(t *testing.T) { manyRequests(t, test.bound, test.most, test.addresses, test.wait) })
	}
}

// post requests a token of the identity banana of a namespace, from an address, and returns the code of the answer.
func post(t *testing.T, handler http.Handler, namespace, address string) int {
	sent := httptest.NewRequestWithContext(t.Context(), "POST", "/apis/authentication.gardener.cloud/v1alpha1/namespaces/"+namespace+"/workloadidentities/banana/selftoken",
		strings.NewReader(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest"}`))
	sent.RemoteAddr = address
	sent.Header.Set("Authorization", "Bearer pod-of-"+namespace)
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, sent)
	return got.Code
}

func manyRequests(t *testing.T, bound string, most int, addresses string, wait func(*selftokens.Config, waits)) {
	w := newWorld()
	started, release := make(chan struct{}), make(chan struct{})
	config := w.config()
	wait(&config, waits{config.Reviews, w, started, release})
	handler := selftokens.New(config)
	ask := func(i int) int { return post(t, handler, "fruit", fmt.Sprintf(addresses, i)) }
	var group sync.WaitGroup
	for i := range most {
		group.Go(func() {
			if got := ask(i); got != http.StatusForbidden && got != http.StatusTooManyRequests {
				t.Errorf("%d", got)
			}
		})
		<-started
	}
	more := make(chan int)
	go func() { more <- ask(most) }()
	select {
	case got := <-more:
		if got != http.StatusTooManyRequests {
			t.Errorf("one more: %d", got)
		}
	case <-started:
		t.Error("one more is worked on")
		defer func() { <-more }()
	}
	if got := w.metric(t, "credence_agent_pods_in_flight", ""); got != float64(most) {
		t.Errorf("%g are in flight, want %d", got, most)
	}
	close(release)
	group.Wait()
	go func() { <-started }()
	if got := ask(most); got != http.StatusForbidden {
		t.Errorf("after them: %d", got)
	}
	for _, series := range []struct {
		name, label string
		want        float64
	}{
		{"credence_agent_pods_in_flight", "", 0},
		{"credence_agent_pods_turned_away_total", bound, 1},
		{"credence_agent_pods_requests_total", "429", 1},
		{"credence_agent_pods_requests_total", "403", float64(most + 1)},
		{"credence_agent_pods_request_seconds", "", float64(most + 2)},
	} {
		if got := w.metric(t, series.name, series.label); got != series.want {
			t.Errorf("%s %s is %g, want %g", series.name, series.label, got, series.want)
		}
	}
}

// crowd is a world of many namespaces. The reviews of the pods of all but one hang, or the tokens of their identities.
type crowd struct {
	waits
	reviews bool
}

func (c crowd) hang(namespace string) bool {
	if namespace == "quiet" {
		return false
	}
	c.started <- struct{}{}
	<-c.release
	return true
}

func (c crowd) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	namespace := strings.TrimPrefix(review.Spec.Token, "pod-of-")
	if c.reviews && c.hang(namespace) {
		return nil, errors.New("the API is away")
	}
	status := c.review
	status.User.Username = "system:serviceaccount:" + namespace + ":web"
	return &authenticationv1.TokenReview{Status: status}, nil
}

func (c crowd) Token(ctx context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, lifetime time.Duration) (identity.Token, error) {
	if c.hang(name.Namespace) {
		return identity.Token{}, errors.New("the identity cluster is away")
	}
	return c.world.Token(ctx, name, uid, binding, object, lifetime)
}

// However many requests a few addresses or namespaces have, there is room for another one.
func TestRoomForOthers(t *testing.T) {
	for name, test := range map[string]struct {
		crowds  int
		reviews bool
		worked  int // of 16 requests of each
	}{
		"beside addresses":       {4, true, 16 + 12 + 9 + 7},
		"beside namespaces":      {4, false, 4 * 16},
		"beside many namespaces": {16, false, 13*16 + 12 + 9 + 7},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c := crowd{waits{nil, w, make(chan struct{}), make(chan struct{})}, test.reviews}
			config := w.config()
			pods := fake.NewClientset()
			pods.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, w.pod, nil })
			config.Reviews, config.Tokens, config.Pods = c, c, pods.CoreV1()
			handler := selftokens.New(config)
			var group sync.WaitGroup
			worked := 0
			for i := range test.crowds * 16 {
				answer := make(chan int, 1)
				group.Go(func() {
					of := i / 16
					answer <- post(t, handler, fmt.Sprintf("crowd-%d", of), fmt.Sprintf("192.0.2.%d:%d", of, i))
				})
				select {
				case <-c.started:
					worked++
				case got := <-answer:
					if got != http.StatusTooManyRequests {
						t.Errorf("request %d: %d", i, got)
					}
				}
			}
			if got := post(t, handler, "quiet", "198.51.100.1:1234"); got != http.StatusCreated || worked != test.worked {
				t.Errorf("another one: %d, beside %d, want %d", got, worked, test.worked)
			}
			close(c.release)
			group.Wait()
		})
	}
}
