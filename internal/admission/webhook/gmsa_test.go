package webhook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/test/testkit"
)

const webapp1 = `{"CmsPlugins":["ActiveDirectory"]}`

// gmsaCluster has the GMSACredentialSpec webapp1, which service account web of namespace orchard may use.
func gmsaCluster() *cluster {
	c := newCluster()
	c.specs["webapp1"] = gmsa.Spec{Exists: true, Contents: webapp1}
	c.allowed["system:serviceaccount:orchard:web/webapp1@orchard"] = true
	c.allowed["system:serviceaccount:orchard:web/cherry@orchard"] = true // of which there is no object
	return c
}

func windowsOptions(name, contents string) map[string]any {
	options := map[string]any{}
	if name != "" {
		options["gmsaCredentialSpecName"] = name
	}
	if contents != "" {
		options["gmsaCredentialSpec"] = contents
	}
	return map[string]any{"windowsOptions": options}
}

// windowsPod is a pod of service account web, with one of this name and these contents, and changes to it.
func windowsPod(name, contents string, changes ...func(map[string]any)) string {
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "iis", "namespace": "orchard"},
		"spec": map[string]any{"serviceAccountName": "web", "securityContext": windowsOptions(name, contents), "containers": []any{map[string]any{"name": "iis", "image": "iis"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func annotations(of map[string]any) func(map[string]any) {
	return func(pod map[string]any) { pod["metadata"].(map[string]any)["annotations"] = of }
}

func ephemeral(containers ...map[string]any) func(map[string]any) {
	return func(pod map[string]any) { pod["spec"].(map[string]any)["ephemeralContainers"] = containers }
}

func gmsaReview(user, object string) sent { return sent{resource: "pods", user: user, object: object} }

func TestAccountsAreFilledInAndAdmitted(t *testing.T) {
	c := gmsaCluster()
	handler := c.handler()
	pod := windowsPod("webapp1", "")
	after := applied(t, pod, ask(t, handler, webhook.MutatePath, gmsaReview("", pod)))
	var got struct {
		Spec struct {
			SecurityContext struct{ WindowsOptions map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(after), &got); err != nil || got.Spec.SecurityContext.WindowsOptions["gmsaCredentialSpec"] != webapp1 {
		t.Fatalf("%v in %s", err, after)
	}
	if again := ask(t, handler, webhook.MutatePath, gmsaReview("", after)); !again.Allowed || again.Patch != nil {
		t.Errorf("the second time: %+v", again)
	}
	if c.reads.Load() != 0 || c.reviews.Load() != 1 {
		t.Errorf("filling in read %d objects from the API, and %d rights", c.reads.Load(), c.reviews.Load())
	}
	if response := ask(t, handler, webhook.ValidatePath, gmsaReview("", after)); !response.Allowed || response.AuditAnnotations["credential-specs"] != "webapp1" {
		t.Errorf("%+v", response)
	}
}

func TestAccountsAreRefused(t *testing.T) {
	const key = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
	pod := windowsPod("webapp1", webapp1)
	for name, test := range map[string]struct {
		change func(*cluster)
		path   string
		sent   sent
		code   int32
		want   string
	}{
		"no such object":         {nil, webhook.MutatePath, gmsaReview("", windowsPod("cherry", "")), 422, `spec.securityContext.windowsOptions.gmsaCredentialSpecName: there is no GMSACredentialSpec "cherry"`},
		"an invalid name":        {nil, webhook.MutatePath, gmsaReview("", windowsPod("../x", "")), 422, "not a valid name of a GMSACredentialSpec"},
		"that name to validate":  {nil, webhook.ValidatePath, gmsaReview("", windowsPod("../x", webapp1)), 422, "not a valid name of a GMSACredentialSpec"},
		"no right to contents":   {func(c *cluster) { clear(c.allowed) }, webhook.MutatePath, gmsaReview("", windowsPod("webapp1", "")), 403, `service account "web" of namespace "orchard" may not use GMSACredentialSpec "webapp1" (denied here)`},
		"no right":               {func(c *cluster) { clear(c.allowed) }, webhook.ValidatePath, gmsaReview("", pod), 403, `service account "web" of namespace "orchard" may not use GMSACredentialSpec "webapp1" (denied here)`},
		"contents without name":  {nil, webhook.ValidatePath, gmsaReview("", windowsPod("", webapp1)), 422, "gmsaCredentialSpecName is not"},
		"not filled in":          {nil, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", "")), 422, "was not filled in"},
		"other contents":         {nil, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", "{}")), 422, "is not what"},
		"API down":               {outage("gmsacredentialspecs", errors.New("connection refused")), webhook.MutatePath, gmsaReview("", windowsPod("cherry", "")), 500, "connection refused"},
		"no review can be made":  {outage("reviews", errors.New("connection refused")), webhook.ValidatePath, gmsaReview("", pod), 500, "review whether system:serviceaccount:orchard:web may use gmsacredentialspecs webapp1 in namespace orchard: connection refused"},
		"another kind":           {nil, webhook.ValidatePath, sent{resource: "secrets", object: "{}"}, 400, "for pods"},
		"another operation":      {nil, webhook.MutatePath, sent{resource: "pods", operation: admissionv1.Delete, object: pod}, 400, "CREATE and UPDATE"},
		"the user may not":       {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.ValidatePath, gmsaReview("jane", pod), 403, `user "jane" may not use GMSACredentialSpec "webapp1"`},
		"an ephemeral container": {nil, webhook.ValidatePath, sent{resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, old: pod, object: windowsPod("webapp1", webapp1, ephemeral(map[string]any{"name": "e", "securityContext": windowsOptions("", "{}")}))}, 422, "spec.ephemeralContainers[0]"},
		"ephemeral, by the user": {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.ValidatePath, sent{resource: "pods", user: "jane", sub: "ephemeralcontainers", operation: admissionv1.Update, old: pod, object: windowsPod("webapp1", webapp1, ephemeral(map[string]any{"name": "e"}))}, 403, `user "jane"`},
		"another image":          {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.ValidatePath, sent{resource: "pods", user: "jane", operation: admissionv1.Update, old: pod, object: strings.Replace(pod, `"image":"iis"`, `"image":"janes"`, 1)}, 403, `user "jane"`},
		"annotation changed":     {gate, webhook.ValidatePath, sent{resource: "pods", operation: admissionv1.Update, old: windowsPod("", "", annotations(map[string]any{key: "x"})), object: windowsPod("", "", annotations(map[string]any{key: "y"}))}, 400, "can't be changed"},
		"annotation by status":   {gate, webhook.ValidatePath, sent{resource: "pods", sub: "status", operation: admissionv1.Update, old: windowsPod("", ""), object: windowsPod("", "", annotations(map[string]any{key: "y"}))}, 400, "can't be added"},
		"annotation by binding":  {gate, webhook.ValidatePath, sent{resource: "pods", sub: "binding", object: `{"metadata":{"annotations":{"` + key + `":"y"}},"target":{"name":"node"}}`}, 400, "can't be added"},
		"by the other binding":   {gate, webhook.ValidatePath, sent{resource: "bindings", object: `{"metadata":{"annotations":{"` + key + `":"y"}}}`}, 400, "can't be added"},
		"annotation, no right":   {gate, webhook.ValidatePath, gmsaReview("", windowsPod("", "", annotations(map[string]any{key + "-name": "other", key: "{}"}))), 403, key + "-name"},
		"a spec of no use":       {nil, webhook.CredentialSpecsPath, sent{resource: "gmsacredentialspecs", object: `{"metadata":{"name":"x"}}`}, 422, "credspec"},
		"a spec of another kind": {nil, webhook.CredentialSpecsPath, sent{resource: "pods", object: "{}"}, 400, "GMSACredentialSpecs"},
		"a user's template":      {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.GMSATemplatesPath, deployment("jane", pod, "", true), 403, `user "jane"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := gmsaCluster()
			if test.change != nil {
				test.change(c)
			}
			response := ask(t, c.handler(), test.path, test.sent)
			if response.Allowed || response.Result.Code != test.code || !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("%+v, want %d with %q", response.Result, test.code, test.want)
			}
			if log := c.log.String(); strings.Contains(log, "ActiveDirectory") || strings.Contains(log, "windowsOptions\"") {
				t.Errorf("the log has contents of the pod: %s", log)
			}
		})
	}
}

// In the stages of a move, a refusal and a missing decision are only reported: to the audit log, and with Warn to the user as well. Contents
// are not filled in for a service account without the right.
func TestRefusalsThatAreOnlyReported(t *testing.T) {
	noRight := func(c *cluster) { clear(c.allowed) }
	for name, test := range map[string]struct {
		change func(*cluster)
		path   string
		sent   sent
		want   string
	}{
		"not filled in":  {noRight, webhook.MutatePath, gmsaReview("", windowsPod("webapp1", "")), `may not use GMSACredentialSpec "webapp1"`},
		"no right":       {noRight, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1)), `may not use GMSACredentialSpec "webapp1"`},
		"other contents": {nil, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", "{}")), "is not what"},
		"no decision":    {outage("reviews", errors.New("connection refused")), webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1)), "connection refused"},
		"an object":      {nil, webhook.CredentialSpecsPath, sent{resource: "gmsacredentialspecs", object: `{"metadata":{"name":"x"}}`}, "credspec"},
		"a template":     {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.GMSATemplatesPath, deployment("jane", windowsPod("webapp1", ""), "", true), `user "jane"`},
	} {
		for enforcement, warnings := range map[webhook.Enforcement]int{webhook.Warn: 1, webhook.Audit: 0} {
			t.Run(name+", "+string(enforcement), func(t *testing.T) {
				c := gmsaCluster()
				if test.change != nil {
					test.change(c)
				}
				c.gmsa.Enforcement = enforcement
				response := ask(t, c.handler(), test.path, test.sent)
				if !response.Allowed || response.Patch != nil || !strings.Contains(response.AuditAnnotations["would-refuse"], test.want) {
					t.Errorf("%+v, want it admitted, and %q in the audit log", response, test.want)
				}
				if len(response.Warnings) != warnings || warnings > 0 && response.Warnings[0] != "would be refused: "+response.AuditAnnotations["would-refuse"] {
					t.Errorf("warnings %q, want %d", response.Warnings, warnings)
				}
			})
		}
	}
}

// Programs find the field of a refusal beside its message, as they do in refusals of the API server.
func TestRefusalsNameTheirFields(t *testing.T) {
	response := ask(t, gmsaCluster().handler(), webhook.MutatePath, gmsaReview("", windowsPod("cherry", "", ephemeral(map[string]any{"name": "e", "securityContext": windowsOptions("plum", "")}))))
	if response.Allowed || response.Result.Details == nil {
		t.Fatalf("%+v", response)
	}
	const at = "securityContext.windowsOptions.gmsaCredentialSpecName"
	want := []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec." + at, Message: `there is no GMSACredentialSpec "cherry": correct the name, or ask a cluster admin for it`},
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.ephemeralContainers[0]." + at, Message: `there is no GMSACredentialSpec "plum": correct the name, or ask a cluster admin for it`},
	}
	if diff := cmp.Diff(want, response.Result.Details.Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func gate(c *cluster) { c.gmsa.Annotations = true }

// deployment is a review of one with the pod as its template; owned adds an owner reference, which any user can write.
func deployment(user, pod, old string, owned bool) sent {
	wrap := func(pod string) string {
		if pod == "" {
			return ""
		}
		owners := "[]"
		if owned {
			owners = `[{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"u","controller":true}]`
		}
		return fmt.Sprintf(`{"kind":"Deployment","metadata":{"name":"d","ownerReferences":%s},"spec":{"template":%s}}`, owners, pod)
	}
	operation := admissionv1.Create
	if old != "" {
		operation = admissionv1.Update
	}
	return sent{resource: "deployments", user: user, operation: operation, object: wrap(pod), old: wrap(old)}
}

func TestWhatGroupManagedAccountsDoNotHinder(t *testing.T) {
	const key = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec"
	pod := windowsPod("gone", "{}")
	for name, test := range map[string]struct {
		change func(*cluster)
		path   string
		sent   sent
	}{
		"an old pod is updated":       {gate, webhook.ValidatePath, sent{resource: "pods", operation: admissionv1.Update, old: pod, object: pod}},
		"and given a debug container": {nil, webhook.ValidatePath, sent{resource: "pods", sub: "ephemeralcontainers", operation: admissionv1.Update, old: pod, object: windowsPod("gone", "{}", ephemeral(map[string]any{"name": "e"}))}},
		"which is not filled in":      {nil, webhook.MutatePath, sent{resource: "pods", operation: admissionv1.Update, old: pod, object: pod}},
		"annotations without gate":    {nil, webhook.ValidatePath, gmsaReview("", windowsPod("", "", annotations(map[string]any{key: "{}"})))},
		"their change without gate":   {nil, webhook.ValidatePath, sent{resource: "pods", operation: admissionv1.Update, old: windowsPod("", "", annotations(map[string]any{key: "x"})), object: windowsPod("", "")}},
		"another image, by default":   {nil, webhook.ValidatePath, sent{resource: "pods", user: "jane", operation: admissionv1.Update, old: pod, object: strings.Replace(pod, `"image":"iis"`, `"image":"janes"`, 1)}},
		"a label, by a user":          {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.ValidatePath, sent{resource: "pods", user: "jane", operation: admissionv1.Update, old: pod, object: pod}},
		"a binding":                   {gate, webhook.ValidatePath, sent{resource: "pods", sub: "binding", object: `{"metadata":{"annotations":{"a":"y"}}}`}},
		"a controller's pod":          {func(c *cluster) { c.gmsa = webhook.GMSA{RequireUser: true, Controllers: []string{"rs"}} }, webhook.ValidatePath, gmsaReview("rs", windowsPod("webapp1", webapp1))},
		"a user who may, too": {func(c *cluster) { c.gmsa.RequireUser = true; c.allowed["jane/webapp1@orchard"] = true }, webhook.ValidatePath,
			gmsaReview("jane", windowsPod("webapp1", webapp1))},
		"a template that stays": {func(c *cluster) { c.gmsa.RequireUser = true }, webhook.GMSATemplatesPath, deployment("jane", pod, pod, false)},
		"a spec that stays":     {nil, webhook.CredentialSpecsPath, sent{resource: "gmsacredentialspecs", operation: admissionv1.Update, object: `{"credspec":{"a":1}}`, old: `{"credspec":{"a":1}}`}},
		"a change not yet seen": {func(c *cluster) { c.unseen["webapp1"] = gmsa.Spec{Exists: true, Contents: `{"a":"new"}`} }, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", `{"a":"new"}`))},
		"an object not yet seen": {func(c *cluster) {
			delete(c.specs, "webapp1")
			c.unseen["webapp1"] = gmsa.Spec{Exists: true, Contents: webapp1}
		}, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1))},
		"both levels, of one account": {nil, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1, ephemeral(map[string]any{"name": "e", "securityContext": windowsOptions("webapp1", webapp1)})))},
	} {
		t.Run(name, func(t *testing.T) {
			c := gmsaCluster()
			if test.change != nil {
				test.change(c)
			}
			if response := ask(t, c.handler(), test.path, test.sent); !response.Allowed || response.Patch != nil || response.Warnings != nil {
				t.Errorf("%+v", response)
			}
		})
	}
}

func TestTemplatesAreWarnedOf(t *testing.T) {
	for name, test := range map[string]struct{ pod, want string }{
		"no right":              {windowsPod("cherry", ""), `there is no GMSACredentialSpec "cherry"`},
		"contents without name": {windowsPod("", "{}"), "gmsaCredentialSpecName is not"},
		"fine":                  {windowsPod("webapp1", ""), ""},
	} {
		response := ask(t, gmsaCluster().handler(), webhook.GMSATemplatesPath, deployment("jane", test.pod, "", false))
		if warned := strings.Join(response.Warnings, "\n"); !response.Allowed || test.want == "" && warned != "" || !strings.Contains(warned, test.want) {
			t.Errorf("%s: %+v, want %q", name, response, test.want)
		}
	}
	response := ask(t, gmsaCluster().handler(), webhook.CredentialSpecsPath, sent{resource: "gmsacredentialspecs", object: sampleSpec(`"MachineAccountName":"webapp1$"`)})
	if warned := strings.Join(response.Warnings, "\n"); !response.Allowed || !strings.Contains(warned, "credspec.DomainJoinConfig.MachineAccountName") {
		t.Errorf("an account with a $: %+v", response)
	}
}

func sampleSpec(account string) string {
	return `{"credspec":{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{"Sid":"S-1-5-21-2126729477-2524075714-3094792973",` + account + `,"Guid":"244818ae-87ca-4fcd-92ec-e79e5252348a","DnsTreeName":"contoso.com","DnsName":"contoso.com","NetBiosName":"CONTOSO"},
		"ActiveDirectoryConfig":{"GroupManagedServiceAccounts":[{"Name":"webapp1","Scope":"contoso.com"},{"Name":"webapp1","Scope":"CONTOSO"}]}}}`
}

func TestHostnames(t *testing.T) {
	c := gmsaCluster()
	c.gmsa.Hostname = func() string { return "g-abc" }
	handler := c.handler()
	pod := windowsPod("webapp1", "")
	after := applied(t, pod, ask(t, handler, webhook.MutatePath, gmsaReview("", pod)))
	if !strings.Contains(after, `"hostname":"g-abc"`) {
		t.Errorf("no host name: %s", after)
	}
	if again := ask(t, handler, webhook.MutatePath, gmsaReview("", after)); again.Patch != nil {
		t.Errorf("another one the second time: %s", again.Patch)
	}
}

// One review for a service account and an object is enough for all pods of ten seconds, however many come at once, and of a
// pod with a hundred references to twenty objects there are twenty.
func TestReviewsAreFew(t *testing.T) {
	c := gmsaCluster()
	handler := c.handler()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if response := ask(t, handler, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1))); !response.Allowed {
				t.Errorf("%+v", response.Result)
			}
		})
	}
	group.Wait()
	if got := c.reviews.Load(); got != 1 {
		t.Errorf("%d reviews for one service account and one object", got)
	}
	c.mu.Lock()
	clear(c.allowed)
	c.now = c.now.Add(10 * time.Second)
	c.mu.Unlock()
	if response := ask(t, handler, webhook.ValidatePath, gmsaReview("", windowsPod("webapp1", webapp1))); response.Allowed {
		t.Error("a right that was taken away ten seconds ago still holds")
	}

	c = gmsaCluster()
	var containers []map[string]any
	for i := range 100 {
		name := fmt.Sprintf("spec%d", i%20)
		c.specs[name] = gmsa.Spec{Exists: true, Contents: webapp1}
		c.allowed["system:serviceaccount:orchard:web/"+name+"@orchard"] = true
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "securityContext": windowsOptions(name, webapp1)})
	}
	many := windowsPod("", "", func(pod map[string]any) { pod["spec"].(map[string]any)["containers"] = containers })
	if response := ask(t, c.handler(), webhook.ValidatePath, gmsaReview("", many)); !response.Allowed || c.reviews.Load() != 20 {
		t.Errorf("%d reviews for 20 objects: %+v", c.reviews.Load(), response.Result)
	}
}

// An admission client may be older, and may name its character set.
func TestReviewsAreAnsweredAsTheyAreAsked(t *testing.T) {
	const uid = `a<b>&\u00e9 "x"`
	body := strings.Replace(string(gmsaReview("", windowsPod("webapp1", "")).body(t)), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)
	quoted, _ := json.Marshal(uid)
	body = strings.Replace(body, `"uid-1"`, string(quoted), 1)
	r := httptest.NewRequest(http.MethodPost, webhook.MutatePath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	gmsaCluster().handler().ServeHTTP(w, r)
	var got struct {
		APIVersion, Kind string
		Response         struct {
			UID       string
			Allowed   bool
			PatchType string
		}
	}
	testkit.Must(t, json.Unmarshal(w.Body.Bytes(), &got))
	want := got
	want.APIVersion, want.Kind, want.Response.UID, want.Response.Allowed, want.Response.PatchType = "admission.k8s.io/v1beta1", "AdmissionReview", uid, true, "JSONPatch"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = httptest.NewRequest(http.MethodPost, webhook.MutatePath, strings.NewReader(strings.Repeat("x", 8<<20)))
	r.Header.Set("Content-Type", "application/json")
	w = httptest.NewRecorder()
	gmsaCluster().handler().ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("8 MiB: HTTP %d", w.Code)
	}
}

// A template that was admitted once, and comes back without being written, needs the right as a written one does.
func TestOldTemplatesNeedTheRight(t *testing.T) {
	object := func(kind string, replicas int, pod string) string {
		return fmt.Sprintf(`{"kind":%q,"metadata":{"name":"d"},"spec":{"replicas":%d,"template":%s}}`, kind, replicas, pod)
	}
	const rollback = `{"kind":"Deployment","metadata":{"name":"d","annotations":{"deprecated.deployment.rollback.to":"1"}},"spec":{"template":{}}}`
	old, plain := windowsPod("webapp1", ""), windowsPod("", "")
	for name, test := range map[string]struct {
		resource, sub, before, after, stored, user string
		want                                       string // no want: admitted
	}{
		"an old ReplicaSet grows":        {resource: "replicasets", before: object("ReplicaSet", 0, old), after: object("ReplicaSet", 1, old), user: "jane", want: `user "jane"`},
		"by a user with the right":       {resource: "replicasets", before: object("ReplicaSet", 0, old), after: object("ReplicaSet", 1, old), user: "joe"},
		"by a controller":                {resource: "replicasets", before: object("ReplicaSet", 0, old), after: object("ReplicaSet", 1, old), user: "rs"},
		"one without an account":         {resource: "replicasets", before: object("ReplicaSet", 0, plain), after: object("ReplicaSet", 1, plain), user: "jane"},
		"one that shrinks":               {resource: "replicasets", before: object("ReplicaSet", 2, old), after: object("ReplicaSet", 1, old), user: "jane"},
		"by its scale":                   {resource: "replicasets", sub: "scale", before: `{"kind":"Scale","spec":{}}`, after: `{"kind":"Scale","spec":{"replicas":2}}`, stored: object("ReplicaSet", 0, old), user: "jane", want: `user "jane"`},
		"by its scale, without account":  {resource: "replicasets", sub: "scale", before: `{"kind":"Scale","spec":{}}`, after: `{"kind":"Scale","spec":{"replicas":2}}`, stored: object("ReplicaSet", 0, plain), user: "jane"},
		"a scale that can't be read":     {resource: "replicasets", sub: "scale", before: `{"kind":"Scale","spec":{}}`, after: `{"kind":"Scale","spec":{"replicas":2}}`, user: "jane", want: "read the template of replicasets orchard/picker"},
		"a scale that shrinks":           {resource: "replicasets", sub: "scale", before: `{"kind":"Scale","spec":{"replicas":2}}`, after: `{"kind":"Scale","spec":{}}`, user: "jane"},
		"an annotation":                  {resource: "deployments", before: object("Deployment", 1, plain), after: rollback, user: "jane", want: "user jane may not use all of them"},
		"an annotation, by a controller": {resource: "deployments", before: object("Deployment", 1, plain), after: rollback, user: "rs"},
	} {
		c := gmsaCluster()
		c.gmsa = webhook.GMSA{RequireUser: true, Controllers: []string{"rs"}}
		c.allowed["joe/webapp1@orchard"] = true
		c.workload = test.stored
		got := ask(t, c.handler(), webhook.GMSATemplatesPath, sent{resource: test.resource, sub: test.sub, operation: admissionv1.Update, user: test.user, object: test.after, old: test.before})
		if got.Allowed != (test.want == "") || !got.Allowed && !strings.Contains(got.Result.Message, test.want) {
			t.Errorf("%s: %+v, want %q", name, got.Result, test.want)
		}
	}
}
