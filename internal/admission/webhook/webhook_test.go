package webhook_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/tokensecret"
)

func TestPodsAreGivenTheirIdentities(t *testing.T) {
	handler := newCluster().handler()
	response := ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON})
	after := applied(t, podJSON, response)
	for _, want := range []string{"AWS_ROLE_ARN", "/var/run/secrets/workload-identity/banana", v1alpha1.GateToken, tokensecret.NameFor("app", "banana")} {
		if !strings.Contains(after, want) {
			t.Errorf("no %s in %s", want, after)
		}
	}
	if again := ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: after}); !again.Allowed || again.Patch != nil {
		t.Errorf("the second time: %+v", again)
	}
}

func TestPodsAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cluster)
		object string
		code   int32
		want   string
	}{
		"no service account":  {func(c *cluster) { delete(c.accounts, "orchard/app") }, "", 403, "service account orchard/app does not exist"},
		"annotation":          {annotate("a,,b"), "", 422, "annotation " + v1alpha1.AnnotationAccountIdentities + " of service account orchard/app"},
		"unknown identity":    {annotate("cherry"), "", 403, `"cherry", named in annotation`},
		"identity going":      {func(c *cluster) { c.identities["orchard/banana"].DeletionTimestamp = &metav1.Time{Time: c.now} }, "", 403, "is being deleted"},
		"identity wrong":      {func(c *cluster) { c.identities["orchard/banana"].Spec.TargetSystem.ProviderConfig = nil }, "", 422, "does not take"},
		"not allowed":         {func(c *cluster) { clear(c.allowed) }, "", 403, "kubectl create rolebinding"},
		"another's Secret":    {nil, strings.Replace(podJSON, `"spec":{`, `"spec":{"imagePullSecrets":[{"name":"credence-token-other-x-0123456789"}],`, 1), 403, "spec.imagePullSecrets[0]"},
		"API down":            {outage("serviceaccounts", errors.New("connection refused")), "", 500, "could not decide"},
		"identities down":     {outage("workloadidentities", errors.New("connection refused")), "", 500, "read workload identity orchard/banana: connection refused"},
		"a cluster that left": {outage("workloadidentities", apierrors.NewUnauthorized("Unauthorized")), "", 500, "this cluster left the identity cluster, or its account there was deleted, or its token ended"},
		"identities not ours": {outage("workloadidentities", apierrors.NewForbidden(schema.GroupResource{}, "banana", nil)), "", 500, "a cluster admin binds ClusterRole credence:identity-reader"},
		"no review":           {outage("reviews", errors.New("connection refused")), "", 500, "review whether system:serviceaccount:orchard:app may use workloadidentities banana in namespace orchard: connection refused"},
		"review forbidden":    {outage("reviews", apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", nil)), "", 500, "could not decide"},
		"RuntimeClass down":   {outage("runtimeclasses", errors.New("connection refused")), strings.Replace(podJSON, `"spec":{`, `"spec":{"runtimeClassName":"r",`, 1), 500, "read RuntimeClass r"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if test.change != nil {
				test.change(c)
			}
			if test.object == "" {
				test.object = podJSON
			}
			response := ask(t, c.handler(), webhook.PodsPath, sent{resource: "pods", object: test.object})
			if response.Allowed || response.Result.Code != test.code || !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("%+v %+v, want %d with %q", response.Allowed, response.Result, test.code, test.want)
			}
			if strings.Contains(c.log.String(), "containers") || strings.Contains(c.log.String(), "imagePull") {
				t.Errorf("the log has a pod in it: %s", &c.log)
			}
		})
	}
}

func annotate(names string) func(*cluster) {
	return func(c *cluster) {
		c.accounts["orchard/app"].Annotations[v1alpha1.AnnotationAccountIdentities] = names
	}
}

func outage(of string, err error) func(*cluster) {
	return func(c *cluster) { c.outages[of] = err }
}

func TestRuntimeClassDecidesWhereNothingElseDoes(t *testing.T) {
	c := newCluster()
	c.classes["hyperv"] = &nodev1.RuntimeClass{Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kubernetes.io/os": "windows"}}}
	for class, windows := range map[string]bool{"hyperv": true, "missing": false} {
		object := strings.Replace(podJSON, `"spec":{`, `"spec":{"runtimeClassName":"`+class+`",`, 1)
		after := applied(t, object, ask(t, c.handler(), webhook.PodsPath, sent{resource: "pods", object: object}))
		if strings.Contains(after, `C:\\var\\run`) != windows {
			t.Errorf("%s: %s", class, after)
		}
	}
}

func TestPodsOfNoAccountAreLeftAlone(t *testing.T) {
	object := strings.Replace(podJSON, `"serviceAccountName":"app",`, "", 1)
	if response := ask(t, newCluster().handler(), webhook.PodsPath, sent{resource: "pods", object: object}); !response.Allowed || response.Patch != nil {
		t.Errorf("%+v", response)
	}
}

func TestEphemeralContainers(t *testing.T) {
	c := newCluster()
	handler := c.handler()
	before := applied(t, podJSON, ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON}))
	before = strings.Replace(before, `"containers":`, `"ephemeralContainers":[{"name":"before"}],"containers":`, 1)
	after := strings.Replace(before, `[{"name":"before"}]`, `[{"name":"before"},{"name":"debug"}]`, 1)
	update := sent{resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, object: after, old: before}
	if patched := applied(t, after, ask(t, handler, webhook.PodsPath, update)); strings.Count(patched, `"mountPath":"/var/run/secrets/workload-identity/banana"`) != 2 || !strings.Contains(patched, `{"name":"before"}`) {
		t.Errorf("%s", patched)
	}
	update.object = before
	if response := ask(t, handler, webhook.PodsPath, update); !response.Allowed || response.Patch != nil {
		t.Errorf("nothing added: %+v", response)
	}
	annotate(",")(c)
	update.object = after
	if response := ask(t, handler, webhook.PodsPath, update); !response.Allowed || response.Patch != nil {
		t.Errorf("an invalid annotation: %+v", response)
	}
	annotate("banana")(c)
	// A pod without identities is admitted even if identities cannot be read.
	c.outages["workloadidentities"] = errors.New("down")
	update.old, update.object = podJSON, strings.Replace(podJSON, `"containers":`, `"ephemeralContainers":[{"name":"debug"}],"containers":`, 1)
	if response := ask(t, handler, webhook.PodsPath, update); !response.Allowed || response.Patch != nil {
		t.Errorf("no volume: %+v", response)
	}
}

func TestSecrets(t *testing.T) {
	handler := newCluster().handler()
	secret := func(context string) string {
		return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"cloud","namespace":"orchard","labels":{"` + v1alpha1.LabelPurpose + `":"` + v1alpha1.PurposeTokenRequestor + `","` + v1alpha1.LabelProvider + `":"aws"},
			"annotations":{"` + v1alpha1.AnnotationName + `":"banana","` + v1alpha1.AnnotationNamespace + `":"orchard"` + context + `}},
			"data":{"config":"YXBpVmVyc2lvbjogYXdzLmF1dGhlbnRpY2F0aW9uLmdhcmRlbmVyLmNsb3VkL3YxYWxwaGExCmlhbVJvbGVBUk46IGFybjphd3M6aWFtOjoxMTIyMzM0NDU1NjY6cm9sZS9waWNrZXIKa2luZDogQ29uZmlnCg=="}}`
	}
	object := secret("")
	after := applied(t, object, ask(t, handler, webhook.SecretsPath, sent{resource: "secrets", object: object, user: "jane"}))
	if !strings.Contains(after, `"credentialsFile":"`) {
		t.Errorf("%s", after)
	}
	again := sent{resource: "secrets", operation: admissionv1.Update, object: after, old: after, user: agent}
	if response := ask(t, handler, webhook.SecretsPath, again); !response.Allowed || response.Patch != nil {
		t.Errorf("the second time: %+v", response)
	}
	account := secret(`,"` + v1alpha1.AnnotationContextObject + `":"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"name\":\"app\",\"namespace\":\"orchard\",\"uid\":\"u\"}"`)
	for user, want := range map[string]bool{agent: true, "jane": false} {
		if response := ask(t, handler, webhook.SecretsPath, sent{resource: "secrets", object: account, user: user}); response.Allowed != want {
			t.Errorf("context of a service account by %s: %+v", user, response)
		}
	}
}

func TestTemplates(t *testing.T) {
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"fruit","namespace":"orchard"},"spec":{"template":` + podJSON + `}}`
	for name, test := range map[string]struct {
		change func(*cluster)
		want   string
	}{
		"admitted": {func(*cluster) {}, ""},
		"refused":  {func(c *cluster) { clear(c.allowed) }, "pods of Deployment fruit will be refused: service account orchard/app may not use"},
		"unknown":  {outage("reviews", errors.New("down")), "could not find out"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			test.change(c)
			response := ask(t, c.handler(), webhook.TemplatesPath, sent{resource: "deployments", object: deployment})
			if !response.Allowed || response.Patch != nil || (len(response.Warnings) > 0) != (test.want != "") || !strings.Contains(strings.Join(response.Warnings, ""), test.want) {
				t.Errorf("%+v, want %q", response, test.want)
			}
		})
	}
}

func TestRightsAreRememberedForTenSeconds(t *testing.T) {
	c := newCluster()
	handler := c.handler()
	allowed := func() bool { return ask(t, handler, webhook.PodsPath, sent{resource: "pods", object: podJSON}).Allowed }
	after := func(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }
	clear(c.allowed)
	if allowed() {
		t.Fatal("admitted without the right")
	}
	c.allowed["system:serviceaccount:orchard:app/banana"] = true
	if !allowed() {
		t.Fatal("a refusal was remembered")
	}
	clear(c.allowed)
	asked := c.reviews.Load()
	after(9 * time.Second)
	if !allowed() || c.reviews.Load() != asked {
		t.Error("the right was reviewed again within ten seconds")
	}
	after(time.Second)
	if allowed() {
		t.Error("the right was remembered for longer than ten seconds")
	}
}

func TestWhatTheAPIServerDoesNotSend(t *testing.T) {
	handler := newCluster().handler()
	good := string(sent{resource: "pods", object: podJSON}.body(t))
	for name, test := range map[string]struct {
		method, kind, body string
		want               int
	}{
		"GET":             {http.MethodGet, "application/json", "", 405},
		"form":            {http.MethodPost, "application/x-www-form-urlencoded", good, 415},
		"no content type": {http.MethodPost, "", good, 415},
		"charset":         {http.MethodPost, "application/json; charset=utf-8", good, 200},
		"no JSON":         {http.MethodPost, "application/json", "{", 400},
		"empty":           {http.MethodPost, "application/json", "", 400},
		"two":             {http.MethodPost, "application/json", good + good, 400},
		"another version": {http.MethodPost, "application/json", strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v2", 1), 400},
		"no request":      {http.MethodPost, "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400},
		"no uid":          {http.MethodPost, "application/json", strings.Replace(good, `"uid":"uid-1"`, `"uid":""`, 1), 400},
		"no pod":          {http.MethodPost, "application/json", strings.Replace(good, podJSON, `{"spec":[]}`, 1), 400},
		"too large":       {http.MethodPost, "application/json", good + strings.Repeat(" ", 7<<20), 413},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, webhook.PodsPath+"?timeout=10s", strings.NewReader(test.body))
			if test.kind != "" {
				r.Header.Set("Content-Type", test.kind)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("HTTP %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
	for name, s := range map[string]sent{
		"secrets":      {resource: "secrets", object: podJSON},
		"no object":    {resource: "pods"},
		"update":       {resource: "pods", operation: admissionv1.Update, object: podJSON, old: podJSON},
		"delete":       {resource: "pods", operation: admissionv1.Delete, old: podJSON},
		"no oldObject": {resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, object: podJSON},
	} {
		if response := ask(t, handler, webhook.PodsPath, s); response.Allowed || response.Result.Code != 400 {
			t.Errorf("%s: %+v, want 400", name, response)
		}
	}
}

// Texts of users and of other objects change no terminal that shows a message.
func TestAnswersHaveNoControlCharacters(t *testing.T) {
	const escape = "a\x1b[2J\u202eb\x9b"
	c := gmsaCluster()
	c.gmsa.RequireUser = true
	annotate(escape)(c)
	refusals, handler := 0, c.handler()
	for name, s := range map[string]struct {
		path string
		sent sent
	}{
		"an annotation of the account": {webhook.PodsPath, sent{resource: "pods", object: podJSON}},
		"after all webhooks":           {finishedPods, sent{resource: "pods", object: podJSON}},
		"a user":                       {webhook.GMSATemplatesPath, sent{resource: "controllerrevisions", user: escape, object: `{"data":{"spec":{"template":{"metadata":{}}}}}`}},
		"a user, in a cause":           {webhook.GMSATemplatesPath, deployment(escape, windowsPod("webapp1", ""), "", false)},
		"a Secret":                     {webhook.PodsPath, sent{resource: "pods", object: strings.Replace(podJSON, `"spec":{`, `"spec":{"imagePullSecrets":[{"name":"credence-token-\u001b[2J"}],`, 1)}},
		"a workload, in a warning":     {webhook.GMSATemplatesPath, sent{resource: "deployments", user: "x", object: `{"kind":"\u001b[2J","spec":{"template":` + windowsPod("cherry", "") + `}}`}},
	} {
		response := ask(t, handler, s.path, s.sent)
		texts := slices.Clone(response.Warnings)
		if response.Result != nil {
			refusals++
			texts = append(texts, response.Result.Message)
			if response.Result.Details != nil {
				for _, cause := range response.Result.Details.Causes {
					texts = append(texts, cause.Message)
				}
			}
		}
		for _, text := range texts {
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s: %q", name, text)
			}
		}
	}
	if refusals < 5 {
		t.Errorf("%d refusals, want more", refusals)
	}
}
