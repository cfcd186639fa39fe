package webhook_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
)

// However often contents are wrong, their object is read once more.
func TestWrongContentsCostOneRead(t *testing.T) {
	c := gmsaCluster()
	object := windowsPod("", "", func(pod map[string]any) {
		var containers []any
		for i := range 100 {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "securityContext": windowsOptions("webapp1", "{}")})
		}
		pod["spec"].(map[string]any)["containers"] = containers
	})
	if got := ask(t, c.handler(), webhook.ValidatePath, gmsaReview("jane", object)); got.Allowed || got.Result.Code != http.StatusUnprocessableEntity {
		t.Errorf("%+v", got.Result)
	}
	if reads := c.reads.Load(); reads != 1 {
		t.Errorf("the object was read %d times", reads)
	}
}

// One request of a user who may create pods must not become thousands of requests to the API.
func TestManyNamesCostFewReads(t *testing.T) {
	c := gmsaCluster()
	handler := c.handler()
	object := windowsPod("", "", func(pod map[string]any) {
		var containers []any
		for i := range 2000 {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "securityContext": windowsOptions(fmt.Sprintf("none%d", i), "")})
		}
		pod["spec"].(map[string]any)["containers"] = containers
	})
	if got := ask(t, handler, webhook.MutatePath, gmsaReview("jane", object)); got.Allowed {
		t.Error("it is admitted")
	}
	if reads := c.reads.Load(); reads > 28 {
		t.Errorf("%d objects were read to refuse one pod: policies let no more than 28 names pass", reads)
	}
	ask(t, handler, webhook.ValidatePath, gmsaReview("jane", object))
	if reviews := c.reviews.Load(); reviews > 28 {
		t.Errorf("%d reviews were made to refuse one pod", reviews)
	}
}

// The listener answers every client, so the cost of a review must be bounded by its size.
func TestMemoryOfReviews(t *testing.T) {
	body := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","resource":{"version":"v1","resource":"pods"},"operation":"CREATE","object":{"spec":{"containers":[{}` +
		strings.Repeat(",{}", 200_000) + `]}}}}`)
	handler := gmsaCluster().handler()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if w := post(handler, webhook.ValidatePath, body); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("HTTP %d", w.Code)
	}
	runtime.ReadMemStats(&after)
	if factor := (after.TotalAlloc - before.TotalAlloc) / uint64(len(body)); factor > 100 {
		t.Errorf("each byte of a review cost %d bytes of memory", factor)
	}
}

// A field is named where it is in the object that was sent.
func TestTemplatesAreNamedByTheirOwnFields(t *testing.T) {
	c := gmsaCluster()
	c.gmsa.RequireUser = true
	deployment := `{"kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"serviceAccountName":"web","securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"}}}}}}`
	got := ask(t, c.handler(), webhook.GMSATemplatesPath, sent{resource: "deployments", operation: admissionv1.Create, user: "jane", object: deployment})
	if got.Allowed || !strings.Contains(got.Result.Message, "spec.template.spec.securityContext") {
		t.Errorf("%+v", got.Result)
	}
}

// Text in annotations may hold braces as many as it likes.
func TestBracesInTextAreNoObjects(t *testing.T) {
	pod := windowsPod("webapp1", webapp1, annotations(map[string]any{"example.com/text": strings.Repeat(`{"a\\":{`, 50_000)}))
	if got := ask(t, gmsaCluster().handler(), webhook.ValidatePath, gmsaReview("", pod)); !got.Allowed {
		t.Errorf("%+v", got.Result)
	}
}

// A user who writes a ControllerRevision writes a template, or a patch of an unknown template.
func TestRevisionsAreTemplates(t *testing.T) {
	whole := func(more string) string {
		return `{"data":{"spec":{"template":{"$patch":"replace"` + more + `}}}}`
	}
	account := `,"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"}}}`
	for name, test := range map[string]struct {
		user, object, want string // no want: admitted
	}{
		"a controller":                      {"rs", whole(account), ""},
		"no account":                        {"jane", whole(`,"spec":{"containers":[{}]}`), ""},
		"with an account":                   {"jane", whole(account), "data.spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName"},
		"by an allowed user":                {"joe", whole(account), ""},
		"a part of a template":              {"joe", `{"data":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"evil"}]}}}}}`, "is merged into the template"},
		"a part, by a user who may use all": {"root", `{"data":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"evil"}]}}}}}`, ""},
		"another case":                      {"joe", `{"data":{"Spec":{"template":{"$patch":"replace"}}}}`, "is merged"},
		"another case of the directive":     {"joe", `{"data":{"spec":{"template":{"$Patch":"replace"}}}}`, "is merged"},
		"something beside the template":     {"joe", `{"data":{"spec":{"template":{"$patch":"replace"},"Template":{}}}}`, "is merged"},
		"a name in two cases, last wins":    {"joe", whole(`,"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"other"}}},"Spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"webapp1"}}}`), `"other"`},
		"letters that fold":                 {"joe", `{"data":{"\u017fpec":{"templa\u0054e":{}}}}`, "is merged"},
		"nothing":                           {"joe", `{}`, ""},
		"of another kind of workload":       {"joe", `{"data":{"spec":{"machine":{}},"template":{}}}`, ""},
	} {
		c := gmsaCluster()
		c.gmsa = webhook.GMSA{RequireUser: true, Controllers: []string{"rs"}}
		c.allowed["joe/webapp1@orchard"], c.allowed["root/@orchard"] = true, true
		got := ask(t, c.handler(), webhook.GMSATemplatesPath, sent{resource: "controllerrevisions", user: test.user, object: test.object})
		if test.want == "" != got.Allowed || !got.Allowed && (got.Result.Code != http.StatusForbidden || !strings.Contains(got.Result.Message, test.want)) {
			t.Errorf("%s: %+v, want %q", name, got.Result, test.want)
		}
	}
	if got := ask(t, gmsaCluster().handler(), webhook.GMSATemplatesPath, sent{resource: "controllerrevisions", user: "jane", object: `{}`}); !got.Allowed {
		t.Errorf("where users are not checked: %+v", got.Result)
	}
}
