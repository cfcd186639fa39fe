package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/relyingparty"
)

// A body is one object, read as it was meant. Any other body is refused before anything decodes it.
func TestBodiesAreOneObject(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	admin := shared.config(t)
	rotation := "/apis/identity.credence.dev/v1alpha1/keyrings/" + identityv1alpha1.WorkloadIdentities + "/rotation"
	revocation := strings.Replace(rotation, "rotation", "revocation", 1)
	before := do(t, admin, "GET", strings.TrimSuffix(rotation, "/rotation"), "", "")
	context := `{"spec":{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"default","namespace":"` + namespace + `","uid":"u"}}}`
	const yaml = "application/yaml"
	for name, body := range map[string]struct{ contentType, text string }{
		"empty":              {"application/json", ""},
		"spaces":             {"application/json", " \n"},
		"null":               {"application/json", " null"},
		"comment":            {yaml, "# nothing\n"},
		"null in YAML":       {yaml, "~\n"},
		"trailing JSON":      {"application/json", `{}` + context},
		"second document":    {yaml, "spec: {}\n---\n" + context + "\n"},
		"empty document":     {yaml, "---\n---\n" + context + "\n"},
		"trailing text":      {yaml, "{} " + context},
		"alias":              {yaml, "metadata: {labels: {a: &a b, c: *a}}\n"},
		"anchor":             {yaml, "spec: &a {}\n"},
		"neither of the two": {yaml, "{"},
	} {
		for _, path := range []string{tokenPath(namespace, "one"), rotation, revocation} {
			if got := do(t, admin, "POST", path, body.contentType, body.text); got.Code != 400 || !json.Valid(got.Body) || len(got.Body) > 4<<10 {
				t.Errorf("%s to %s: code %d, want 400: %.300s", name, path, got.Code, got.Body)
			}
		}
	}
	if after := do(t, admin, "GET", strings.TrimSuffix(rotation, "/rotation"), "", ""); keysOf(t, before) != keysOf(t, after) {
		t.Errorf("refused requests changed the keys: %s, and before %s", after.Body, before.Body)
	}
	expect(t, do(t, admin, "POST", tokenPath(namespace, "one"), yaml, "kind: TokenRequest\napiVersion: authentication.gardener.cloud/v1alpha1\nspec: {duration: 20m}\n").is(201), "a TokenRequest in YAML")
}

// keysOf are the keys of a KeyRing and their states.
func keysOf(t *testing.T, got response) string {
	t.Helper()
	var ring identityv1alpha1.KeyRing
	must(t, json.Unmarshal(got.Body, &ring))
	var keys []string
	for _, key := range ring.Status.Keys {
		keys = append(keys, fmt.Sprintf("%s %v", key.ID, key.State))
	}
	return strings.Join(keys, ", ")
}

// Refused before it costs anything: each of these took seconds of CPU, and the last one gigabytes of memory.
func TestLargeBodies(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	var labels strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&labels, `"k%d/_":"v_",`, i)
	}
	badLabels := `"labels":{` + labels.String() + `"a":"b"},"name"`
	const head = "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: x}\nspec:\n  audiences: ["
	for name, test := range map[string]struct {
		method, path, contentType, body string
		code                            int
	}{
		"JSON":                   {"POST", "", "application/json", `{"a":"` + strings.Repeat("x", 512<<10) + `"}`, 413},
		"YAML":                   {"POST", "", "application/yaml", head + strings.Repeat("{a: 1},", 10<<10) + "]\n", 413},
		"values":                 {"POST", "", "application/json", `{"a":[` + strings.Repeat("1,", 20_000) + `1]}`, 413},
		"values to apply":        {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", `{"a":[` + strings.Repeat("1,", 20_000) + `1]}`, 413},
		"operations of a patch":  {"PATCH", "/one", "application/json-patch+json", `[` + strings.Repeat(`{"op":"test"},`, 10_000) + `{"op":"test"}]`, 413},
		"YAML in a deletion":     {"DELETE", "/one", "application/yaml", strings.Repeat("- a\n", 20<<10), 413},
		"aliases of a long text": {"POST", "", "application/yaml", head + "&a " + strings.Repeat("a", 30<<10) + strings.Repeat(",*a", 10<<10) + "]\n", 400},
		"errors":                 {"POST", "", "application/json", strings.Replace(identityJSON("x", "aws", "a"), `"name"`, badLabels, 1), 422},
		"errors of a patch":      {"PATCH", "/one", "application/merge-patch+json", `{"metadata":{` + strings.TrimSuffix(badLabels, `,"name"`) + `}}`, 422},
	} {
		got := do(t, shared.config(t), test.method, identitiesPath(namespace)+test.path, test.contentType, test.body)
		if got.Code != test.code || !json.Valid(got.Body) || len(got.Body) > 32<<10 {
			t.Errorf("%s: code %d, want %d: %.300s", name, got.Code, test.code, got.Body)
		}
	}
}

// The largest identity that is valid can be applied, replaced as it is served, and freed of its finalizers.
func TestLargestIdentity(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin := shared.config(t)
	var wi v1alpha1.WorkloadIdentity
	object := func(filling int) string {
		audiences := make([]string, 20)
		for i := range audiences {
			audiences[i] = fmt.Sprintf("%s%02d", strings.Repeat("é", 598), i)
		}
		wi = v1alpha1.WorkloadIdentity{}
		wi.APIVersion, wi.Kind, wi.Name = v1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity", "largest"
		wi.Finalizers = []string{"example.com/keep"}
		wi.Annotations = map[string]string{"example.com/a": strings.Repeat("a", filling)}
		wi.Spec.Audiences, wi.Spec.TargetSystem.Type = audiences[:4], "generic"
		body := need(json.Marshal(wi))(t)
		config := `{"apiVersion":"a/v1","kind":"K","x":"` + strings.Repeat("x", 65_000) + `"}`
		return strings.Replace(string(body), `"type"`, `"providerConfig":`+config+`,"type"`, 1)
	}
	create := func(filling int) response {
		return do(t, admin, "POST", identitiesPath(namespace)+"?fieldManager=creator&dryRun=All", "application/json", object(filling))
	}
	small, large := 0, 250_000
	for small+1 < large {
		if middle := (small + large) / 2; create(middle).Code == 201 {
			small = middle
		} else {
			large = middle
		}
	}
	if got := create(large); got.Code != 422 || !strings.Contains(string(got.Body), "bytes of JSON") || len(got.Body) > 4<<10 {
		t.Fatalf("the object that is too large: %d %.300s", got.Code, got.Body)
	}
	body := object(small)
	apply := func(manager string) response {
		return do(t, admin, "PATCH", identitiesPath(namespace)+"/largest?force=true&fieldManager="+manager, "application/apply-patch+yaml", body)
	}
	must(t, apply("first").is(201), "apply")
	must(t, apply("second").is(200), "apply again, as another manager")
	served := do(t, admin, "GET", identitiesPath(namespace)+"/largest", "", "")
	if got := do(t, admin, "PUT", identitiesPath(namespace)+"/largest", "application/json", string(served.Body)); got.Code != 200 {
		t.Fatalf("replace %d bytes as they were served: %d %.300s", len(served.Body), got.Code, got.Body)
	}
	must(t, do(t, admin, "DELETE", identitiesPath(namespace)+"/largest", "", "").is(200), "delete")
	must(t, do(t, admin, "PATCH", identitiesPath(namespace)+"/largest", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`).is(200), "free it of its finalizers")
}

// A user who may write identities cannot drive the events of others out of the audit log.
func TestAuditEventsAreBounded(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	admin := shared.config(t)
	log := filepath.Join(shared.Dir, "apiserver-audit.log")
	long := strings.Repeat("x", 200<<10)
	for name, test := range map[string]struct {
		method, path, contentType, body string
		code                            int
	}{
		"refused":         {"POST", "", "application/json", strings.Replace(identityJSON("x", "aws", "a"), `"name"`, `"labels":{"a":"`+long+`"},"name"`, 1), 422},
		"not decoded":     {"POST", "/one/token", "application/json", tokenRequest(`{"duration":"` + strings.Repeat("1", 200<<10) + `"}`), 400},
		"accepted":        {"PATCH", "/one", "application/merge-patch+json", `{"metadata":{"annotations":{"a":"` + long + `"}}}`, 200},
		"long URI":        {"GET", "/" + strings.Repeat("x", 8<<10), "", "", 404},
		"long parameters": {"GET", "?labelSelector=" + strings.Repeat("x", 8<<10), "", "", 400},
	} {
		got := do(t, admin, test.method, identitiesPath(namespace)+test.path, test.contentType, test.body)
		if got.Code != test.code {
			t.Errorf("%s: code %d, want %d: %.300s", name, got.Code, test.code, got.Body)
		}
		var found []auditv1.Event
		eventually(t, func() error {
			if found = events(t, log, got.Header.Get("Audit-Id")); len(found) == 0 {
				return fmt.Errorf("no event of %s", name)
			}
			return nil
		})
		text := need(json.Marshal(found[0]))(t)
		if len(text) > 8<<10 || found[0].Level != auditv1.LevelMetadata {
			t.Errorf("%s: an event of %d bytes, level %s", name, len(text), found[0].Level)
		}
		if cut := found[0].Annotations["audit.k8s.io/truncated"] == "true"; cut != (name == "accepted") {
			t.Errorf("%s: annotations %v", name, found[0].Annotations)
		}
	}
}

// Whatever an identity holds, its namespace can be listed in every format, and its token fits in a Secret.
func TestIdentitiesCanBeReadByAll(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin := shared.config(t)
	const identity = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":%q},"spec":{"audiences":%s,"targetSystem":{"type":"generic","providerConfig":{"apiVersion":"a/v1","kind":"K","x":%s}}}}`
	for name, config := range map[string]string{"pair": `"\ud83d\ude00"`, "slash": `"a\/b"`, "delete": "\"\x7f\"", "line": "\"\u0085\u2028\"", "number": `1.50`} {
		expect(t, do(t, admin, "POST", identitiesPath(namespace), "application/json", fmt.Sprintf(identity, name, `["a"]`, config)).is(201), name)
	}
	for name, config := range map[string]string{"half": `"\ud83d"`, "large": `12345678901234567890`} {
		expect(t, do(t, admin, "POST", identitiesPath(namespace), "application/json", fmt.Sprintf(identity, name, `["a"]`, config)).is(422, "spec.targetSystem.providerConfig"), name)
	}
	expect(t, do(t, admin, "POST", identitiesPath(namespace), "application/json", fmt.Sprintf(identity, "invisible", "[\"a\u200b\"]", `1`)).is(422), "an audience that is not what it looks like")
	list := need(http.NewRequestWithContext(t.Context(), "GET", admin.Host+identitiesPath(namespace), nil))(t)
	list.Header.Set("Accept", "application/yaml")
	client := need(rest.HTTPClientFor(admin))(t)
	answer := need(client.Do(list))(t)
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("the list in YAML: %d", answer.StatusCode)
	}
	// Six bytes of a claim for each of these.
	audiences := need(json.Marshal([]string{strings.Repeat("<", 600), strings.Repeat(">", 600), strings.Repeat("&", 150)}))(t)
	must(t, do(t, admin, "POST", identitiesPath(namespace), "application/json", fmt.Sprintf(identity, strings.Repeat("n", 150), audiences, `1`)).is(201), "the longest audiences")
	issued := token(t, admin, namespace, strings.Repeat("n", 150), `{}`).Status.Token
	if len(issued) > relyingparty.MaxTokenLength || len(issued) < 10<<10 {
		t.Errorf("the longest token has %d bytes, at most %d are read", len(issued), relyingparty.MaxTokenLength)
	}
}
