package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// direct returns the configuration for the aggregated server's own port.
func (p plane) direct(t *testing.T) *rest.Config {
	t.Helper()
	return p.onPort(t, healthPorts["apiserver"])
}

func TestRequestsPastTheCluster(t *testing.T) {
	inTurn(t)
	anonymous := rest.AnonymousClientConfig(shared.direct(t))
	expect(t, do(t, anonymous, "GET", "/apis", "", "").is(401), "anonymous on the direct port")
	expect(t, do(t, anonymous, "GET", "/readyz", "", "").is(200), "health check")
	// Headers of the front proxy count for nothing without its certificate.
	request := need(http.NewRequestWithContext(t.Context(), "GET", anonymous.Host+identitiesPath("default"), nil))(t)
	request.Header.Set("X-Remote-User", "credence-admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	got := need(shared.publicClient(t).Do(request))(t)
	got.Body.Close()
	if got.StatusCode != 401 {
		t.Errorf("forged front-proxy headers: %d, want 401", got.StatusCode)
	}
	issued := token(t, shared.config(t), makeIdentity(t), "one", `{}`).Status.Token
	anonymous.BearerToken = issued
	expect(t, do(t, anonymous, "GET", identitiesPath("default"), "", "").is(401), "a workload identity's token on the direct port")
}

func makeIdentity(t *testing.T) (namespace string) {
	t.Helper()
	namespace = shared.namespace(t)
	shared.create(t, namespace, "one", "aws", "a")
	return namespace
}

// The published keys are what all relying parties trust: not even an administrator writes them by hand.
func TestPlaneOnlyTheAPIServerWritesTheDocuments(t *testing.T) {
	p := alone(t)
	configMaps := p.client(t).CoreV1().ConfigMaps("credence-system")
	// The server may write at the same time.
	change := func(name string, c func(*corev1.ConfigMap)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			changed, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatalf("%s is gone: %v", name, err)
			}
			c(changed)
			return errOf(configMaps.Update(t.Context(), changed, metav1.UpdateOptions{}))
		})
	}
	if err := change("credence-discovery", func(c *corev1.ConfigMap) { c.Data["jwks.json"] = `{"keys":[]}` }); err == nil || !strings.Contains(err.Error(), "written by the Credence API server alone") {
		t.Errorf("an administrator changed the documents: %v", err)
	}
	expect(t, change("credence-discovery", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"example.com/kept": "yes"} }), "metadata is free")
	for _, name := range []string{"credence-discovery", "credence-signer-ledger"} {
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		if err := configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, one); err == nil {
			t.Errorf("an administrator deleted %s as a collection", name)
		}
		if err := configMaps.Delete(t.Context(), name, metav1.DeleteOptions{}); err == nil {
			t.Errorf("an administrator deleted %s", name)
		}
		yes := true
		for what, c := range map[string]struct {
			change func(*corev1.ConfigMap)
			want   string
		}{
			"immutable":   {func(c *corev1.ConfigMap) { c.Immutable = &yes }, "must not be immutable"},
			"binary data": {func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"x": make([]byte, 1000<<10)} }, "has no binaryData"},
			"a little":    {func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"x": {1}} }, "has no binaryData"},
			"a finalizer": {func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/kept"} }, "neither finalizers nor owners"},
			"an owner": {func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "kube-root-ca.crt", UID: "x"}}
			}, "neither finalizers nor owners"},
			"annotations": {func(c *corev1.ConfigMap) {
				c.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 200<<10)}
			}, "16 KiB of annotations"},
			"labels": {func(c *corev1.ConfigMap) {
				c.Labels = map[string]string{}
				for i := range 65 {
					c.Labels[fmt.Sprintf("example.com/l%d", i)] = "x"
				}
			}, "64 labels"},
		} {
			if err := change(name, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("an administrator gave %s %s: %v, want %q", name, what, err, c.want)
			}
		}
	}
	// Field managers that own the same label fill the object, too.
	var refused error
	for i := 0; i < 40 && refused == nil; i++ {
		_, refused = configMaps.Patch(t.Context(), "credence-signer-ledger", types.ApplyPatchType,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"credence-signer-ledger","labels":{"example.com/p":"x"}}}`),
			metav1.PatchOptions{FieldManager: fmt.Sprintf("manager-%d", i)})
	}
	if refused == nil || !strings.Contains(refused.Error(), "32 field managers") {
		t.Errorf("40 field managers: %v", refused)
	}
}

func TestNothingIsLostInDecoding(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	admin := shared.config(t)
	context := `{"apiVersion":"v1","kind":"ServiceAccount","name":"default","namespace":"` + namespace + `","uid":"u"}`
	for name, body := range map[string]string{
		"context twice, the last null": `{"spec":{"contextObject":` + context + `,"contextObject":null}}`,
		"context in the wrong case":    `{"spec":{"contextobject":` + context + `}}`,
		"context one level too high":   `{"contextObject":` + context + `}`,
		"unknown field":                `{"spec":{"context":` + context + `}}`,
	} {
		for _, validation := range []string{"Ignore", "Warn", "Strict"} {
			expect(t, do(t, admin, "POST", tokenPath(namespace, "one")+"?fieldValidation="+validation, "application/json", body).is(400), fmt.Sprintf("%s with fieldValidation=%s", name, validation))
		}
	}
	providerConfig := func(config string) string {
		return strings.Replace(identityJSON("x", "aws", "a"), `"type"`, `"providerConfig":`+config+`,"type"`, 1)
	}
	const double = `{"apiVersion":"a/v1","kind":"K","x":1,"x":2}`
	for name, test := range map[string]struct {
		method, path, contentType, body string
		code                            int
	}{
		"number that no float holds": {"POST", "", "application/json", providerConfig(`{"apiVersion":"a/v1","kind":"K","x":1e400}`), 400},
		"the same in an update":      {"PUT", "/one", "application/json", strings.Replace(providerConfig(`{"apiVersion":"a/v1","kind":"K","x":[-1e999]}`), `"x"}`, `"one"}`, 1), 400},
		"invalid UTF-8":              {"POST", "", "application/json", providerConfig("{\"apiVersion\":\"a/v1\",\"kind\":\"K\",\"x\":\"\xff\xfe\"}"), 422},
		"key twice":                  {"POST", "", "application/json", providerConfig(double), 422},
		"key twice in YAML":          {"POST", "", "application/yaml", "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: x}\nspec:\n  audiences: [a]\n  targetSystem:\n    type: aws\n    providerConfig: {apiVersion: a/v1, kind: K, x: 1, x: 2}\n", 400},
		"key twice in a merge patch": {"PATCH", "/one", "application/merge-patch+json", `{"spec":{"targetSystem":{"providerConfig":` + double + `}}}`, 422},
		"key twice in JSON to apply": {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"one"},"spec":{"targetSystem":{"type":"aws","providerConfig":` + double + `}}}`, 422},
		"key twice in YAML to apply": {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: one}\nspec:\n  targetSystem: {type: aws, providerConfig: {apiVersion: a/v1, kind: K, x: 1, x: 2}}\n", 400},
		"key twice in a JSON patch":  {"PATCH", "/one", "application/json-patch+json", `[{"op":"add","path":"/spec/targetSystem/providerConfig","value":` + double + `}]`, 422},
		"number in YAML":             {"POST", "", "application/yaml", "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: x}\nspec:\n  audiences: [a]\n  targetSystem:\n    type: aws\n    providerConfig: {apiVersion: a/v1, kind: K, x: 18446744073709551616}\n", 422},
		"number in JSON to apply":    {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"one"},"spec":{"targetSystem":{"type":"aws","providerConfig":{"apiVersion":"a/v1","kind":"K","x":1e400}}}}`, 422},
		"number in YAML to apply":    {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: one}\nspec:\n  targetSystem: {type: aws, providerConfig: {apiVersion: a/v1, kind: K, x: 5e-400}}\n", 422},
		"bytes in YAML to apply":     {"PATCH", "/one?fieldManager=x", "application/apply-patch+yaml", "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: one}\nspec:\n  targetSystem: {type: aws, providerConfig: {apiVersion: a/v1, kind: K, x: !!binary gICA}}\n", 422},
		"patch too large":            {"PATCH", "/one", "application/merge-patch+json", `{"spec":{"audiences":["` + strings.Repeat("a", 4<<20) + `"]}}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			separator := "?"
			if strings.Contains(test.path, "?") {
				separator = "&"
			}
			got := do(t, admin, test.method, identitiesPath(namespace)+test.path+separator+"fieldValidation=Ignore", test.contentType, test.body)
			if got.Code != test.code || !json.Valid(got.Body) {
				t.Errorf("code %d, want %d: %.400s", got.Code, test.code, got.Body)
			}
		})
	}
}

func TestTokenRequestForAnotherUID(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	body := func(uid string) string {
		return strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"uid":"`+uid+`"},"spec"`, 1)
	}
	expect(t, do(t, shared.config(t), "POST", tokenPath(namespace, "one"), "application/json", body("another")).is(409), "another uid")
	var wi metav1.PartialObjectMetadata
	must(t, json.Unmarshal(do(t, shared.config(t), "GET", identitiesPath(namespace)+"/one", "", "").Body, &wi))
	expect(t, do(t, shared.config(t), "POST", tokenPath(namespace, "one"), "application/json", body(string(wi.UID))).is(201), "the identity's uid")
}

// A client must not be able to make an answer large, nor an event of one of the two audit logs: these are rotated by size.
func TestRefusalsAreShort(t *testing.T) {
	inTurn(t)
	namespace := makeIdentity(t)
	long := strings.Repeat("x", 500<<10)
	for _, body := range []string{
		tokenRequest(`{"duration":"` + strings.Repeat("1", 500<<10) + `"}`),
		tokenRequest(`{"duration":"` + strings.Repeat("1", 1<<20) + `"}`),
		tokenRequest(`{"` + long + `":1}`),
		strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"name":"`+long+`"},"spec"`, 1),
		strings.Replace(tokenRequest(`{}`), `"spec"`, `"metadata":{"uid":"`+long+`"},"spec"`, 1),
		tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"a","namespace":"` + long + `","uid":"u"}}`),
		tokenRequest(`{"contextObject":{"apiVersion":"v1","kind":"` + long + `","name":"a","namespace":"b","uid":"u"}}`),
	} {
		got := do(t, shared.config(t), "POST", tokenPath(namespace, "one"), "application/json", body)
		if got.Code < 400 || len(got.Body) > 8<<10 {
			t.Errorf("code %d, %d bytes: %.200s", got.Code, len(got.Body), got.Body)
		}
		for _, log := range []string{filepath.Join(shared.Dir, "apiserver-audit.log"), filepath.Join(shared.Dir, "devcluster", "audit.log")} {
			eventually(t, func() error {
				found := events(t, log, got.Header.Get("Audit-Id"))
				if len(found) == 0 {
					return fmt.Errorf("no event %s in %s", got.Header.Get("Audit-Id"), log)
				}
				for _, event := range found {
					if text, err := json.Marshal(event); err != nil || len(text) > 4<<10 {
						t.Errorf("%s has an event of %d bytes: %.300s", log, len(text), text)
					}
				}
				return nil
			})
		}
	}
}

// The role by which an administrator lets the API server read parameters of policies gives nothing by itself.
func TestRoleForParametersIsEmpty(t *testing.T) {
	inTurn(t)
	role := need(shared.client(t).RbacV1().ClusterRoles().Get(t.Context(), "credence:admission-params", metav1.GetOptions{}))(t)
	if role.AggregationRule == nil || len(role.Rules) != 0 {
		t.Errorf("the role for parameters of policies is not empty by default: %+v", role.Rules)
	}
}
