package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
)

const macAnnotation = "storage.credence.dev/mac"

// recordOf is the name of the record of an identity, and recordKey its key.
func recordOf(namespace, name string) string {
	escaped := strings.NewReplacer("0", "00")
	return "authentication.gardener.cloud0-workloadidentities0-" + escaped.Replace(namespace) + "0-" + escaped.Replace(name)
}

func recordKey(namespace, name string) string {
	return "/authentication.gardener.cloud/workloadidentities/" + namespace + "/" + name
}

// TestPlaneRecordsOfOthers: a record that no API server has written is ignored, whichever way it was stored.
func TestPlaneRecordsOfOthers(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--storage", "cluster", "--arg", "apiserver=--keys-refresh-interval=1s")
	namespace := p.namespace(t)
	victim := p.create(t, namespace, "victim", "aws", "team")
	other := p.create(t, namespace, "other", "aws", "team")
	admin := p.config(t)

	// Whether an API server runs is what the cluster finds.
	for _, api := range []string{"v1alpha1.authentication.gardener.cloud", "v1alpha1.identity.credence.dev"} {
		path := "/apis/apiregistration.k8s.io/v1/apiservices/" + api + "/status"
		for _, attack := range []struct{ contentType, body string }{
			{mergePatch, `{"status":{"conditions":[{"type":"Available","status":"False","reason":"x","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
			{"application/apply-patch+yaml", `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"` + api + `"},"status":{"conditions":[{"type":"Available","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
		} {
			query := "?dryRun=All&fieldManager=m"
			if attack.contentType != mergePatch {
				query += "&force=true"
			}
			if got := do(t, admin, "PATCH", path+query, attack.contentType, attack.body); got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), "is what the cluster finds") {
				t.Errorf("the status of %s: %d %s", api, got.Code, got.Body)
			}
		}
	}
	definitionStays(t, p)
	keyOfRecordsIsGuarded(t, p)

	// The policies are gone: a cluster admin can delete their bindings.
	for _, name := range []string{"credence-records", "credence-records-restore"} {
		p.must(t, "", "kubectl", "delete", "validatingadmissionpolicybinding", name)
	}
	read := func(name string) *unstructured.Unstructured {
		t.Helper()
		found := &unstructured.Unstructured{}
		if got := do(t, admin, "GET", recordsPath+"/"+recordOf(namespace, name), "", ""); json.Unmarshal(got.Body, found) != nil || found.GetName() == "" {
			t.Fatalf("the record of %s: %d %s", name, got.Code, got.Body)
		}
		return found
	}
	signed := read("other")
	if signed.GetAnnotations()[macAnnotation] == "" {
		t.Fatalf("a record is not signed: %v", signed.GetAnnotations())
	}
	forge := func(name string, uid types.UID, annotations map[string]string) *unstructured.Unstructured {
		t.Helper()
		forged := other.DeepCopy()
		forged.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity"}
		forged.Name, forged.UID, forged.ResourceVersion, forged.ManagedFields = name, uid, "", nil
		forged.Status.Sub = "gardener.cloud:workloadidentity:" + namespace + ":" + name + ":" + string(uid)
		value := need(json.Marshal(forged))(t)
		record := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "storage.credence.dev/v1", "kind": "Record", "key": recordKey(namespace, name), "value": value}}
		record.SetName(recordOf(namespace, name))
		record.SetLabels(signed.GetLabels())
		record.SetAnnotations(annotations)
		return record
	}
	plant := func(record *unstructured.Unstructured) {
		t.Helper()
		body := need(json.Marshal(record))(t)
		eventually(t, func() error {
			if got := do(t, admin, "POST", recordsPath, "application/json", string(body)); got.Code != http.StatusCreated && got.Code != http.StatusConflict {
				return fmt.Errorf("plant: %d %s", got.Code, got.Body)
			}
			return nil
		})
	}
	const free = types.UID("b1946ac9-2ee7-4a8e-9d1e-0a1b2c3d4e5f")
	plant(forge("planted", free, nil))
	plant(forge("copied", free, signed.GetAnnotations()))
	ignored := func() {
		t.Helper()
		for _, name := range []string{"planted", "copied"} {
			if got := do(t, admin, "GET", identitiesPath(namespace)+"/"+name, "", ""); got.Code != http.StatusNotFound {
				t.Errorf("identity %s: %d %s", name, got.Code, got.Body)
			}
			if got := do(t, admin, "POST", tokenPath(namespace, name), "application/json", tokenRequest(`{}`)); got.Code != http.StatusNotFound {
				t.Errorf("a token of %s: %d %s", name, got.Code, got.Body)
			}
		}
		if got := do(t, admin, "GET", identitiesPath(namespace), "", ""); got.Code != http.StatusOK || strings.Contains(string(got.Body), "planted") || !strings.Contains(string(got.Body), "victim") {
			t.Errorf("the list: %d %s", got.Code, got.Body)
		}
	}
	ignored()
	p.restart(t, "apiserver")
	if again := p.read(t, identitiesPath(namespace)+"/victim"); again.UID != victim.UID {
		t.Errorf("after a restart: uid %s, want %s", again.UID, victim.UID)
	}
	ignored()
	// A restore by other means, which keeps annotations, gives back what was written.
	restored := read("other")
	for _, method := range []string{"DELETE", "POST"} {
		restored.SetResourceVersion("")
		restored.SetUID("")
		restored.SetManagedFields(nil)
		body, path := "", recordsPath+"/"+restored.GetName()
		if method == "POST" {
			text := need(json.Marshal(restored))(t)
			body, path = string(text), recordsPath
		}
		if got := do(t, admin, method, path, "application/json", body); got.Code >= 300 {
			t.Fatalf("%s: %d %s", method, got.Code, got.Body)
		}
	}
	if again := p.read(t, identitiesPath(namespace)+"/other"); again.UID != other.UID {
		t.Errorf("a restored identity: uid %s, want %s", again.UID, other.UID)
	}
	upgradeSigns(t, p, namespace, other, victim, forge)
}

// upgradeSigns: before the step of an upgrade that signs what is stored, records without a MAC are those of an earlier version. A uid that another
// identity has gives no tokens even then.
func upgradeSigns(t *testing.T, p plane, namespace string, other, victim *v1alpha1.WorkloadIdentity, forge func(string, types.UID, map[string]string) *unstructured.Unstructured) {
	t.Helper()
	admin, server := p.config(t), p.clientAs(t, apiserverUser, "system:masters")
	secrets := server.CoreV1().Secrets("credence-system")
	must(t, errOf(secrets.Patch(t.Context(), cluster.KeySecret, types.MergePatchType, []byte(`{"data":{"enforced":null}}`), metav1.PatchOptions{})))
	thief := forge("thief", victim.UID, nil)
	body, err := json.Marshal(thief)
	must(t, err)
	if got := do(t, admin, "POST", recordsPath, "application/json", string(body)); got.Code != http.StatusCreated {
		t.Fatalf("plant: %d %s", got.Code, got.Body)
	}
	path := recordsPath + "/" + recordOf(namespace, "other")
	if got := do(t, admin, "PATCH", path, mergePatch, `{"metadata":{"annotations":{"`+macAnnotation+`":null}}}`); got.Code != http.StatusOK {
		t.Fatalf("a record of an earlier version: %d %s", got.Code, got.Body)
	}
	p.restart(t, "apiserver")
	if again := p.read(t, identitiesPath(namespace)+"/other"); again.UID != other.UID {
		t.Errorf("an identity of an earlier version: uid %s, want %s", again.UID, other.UID)
	}
	eventually(t, func() error {
		if got := do(t, admin, "POST", tokenPath(namespace, "thief"), "application/json", tokenRequest(`{}`)); got.Code != http.StatusConflict || !strings.Contains(string(got.Body), "is that of another identity") {
			return fmt.Errorf("a token of the uid of another identity: %d %s", got.Code, got.Body)
		}
		return nil
	})
	token(t, admin, namespace, "victim", `{}`)

	if got := do(t, admin, "DELETE", recordsPath+"/"+thief.GetName(), "", ""); got.Code != http.StatusOK {
		t.Fatalf("delete: %d %s", got.Code, got.Body)
	}
	keys := cluster.Keys{Secrets: secrets, Records: server.CoreV1().RESTClient()}
	must(t, errOf(keys.Open(t.Context(), true)), "sign")
	var record metav1.PartialObjectMetadata
	if got := do(t, admin, "GET", path, "", ""); json.Unmarshal(got.Body, &record) != nil || record.Annotations[macAnnotation] == "" {
		t.Errorf("the record is not signed: %d %s", got.Code, got.Body)
	}
	// The server that runs notices it, and refuses what is not signed from then on.
	if body, err = json.Marshal(forge("late", "b1946ac9-2ee7-4a8e-9d1e-0a1b2c3d4e60", nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := do(t, admin, "POST", recordsPath, "application/json", string(body)); got.Code != http.StatusCreated && got.Code != http.StatusConflict {
			return fmt.Errorf("plant: %d %s", got.Code, got.Body)
		}
		if got := do(t, admin, "POST", tokenPath(namespace, "late"), "application/json", tokenRequest(`{}`)); got.Code != http.StatusNotFound {
			// It was seen before the server has noticed: planted anew.
			_ = do(t, admin, "DELETE", recordsPath+"/"+recordOf(namespace, "late"), "", "")
			return fmt.Errorf("a token: %d %s", got.Code, got.Body)
		}
		return nil
	})
	if again := p.read(t, identitiesPath(namespace)+"/other"); again.UID != other.UID {
		t.Errorf("after signing: uid %s, want %s", again.UID, other.UID)
	}
	// The key is lost: servers that run store it again.
	before, err := secrets.Get(t.Context(), cluster.KeySecret, metav1.GetOptions{})
	if err == nil {
		err = p.client(t).CoreV1().Secrets("credence-system").Delete(t.Context(), cluster.KeySecret, metav1.DeleteOptions{})
	}
	must(t, err)
	eventually(t, func() error {
		now, err := secrets.Get(t.Context(), cluster.KeySecret, metav1.GetOptions{})
		if err != nil || string(now.Data["key"]) != string(before.Data["key"]) || string(now.Data["enforced"]) != "true" {
			return fmt.Errorf("the key is not stored again: %w", err)
		}
		return nil
	})
}

// keyOfRecordsIsGuarded: no other user chooses the key.
func keyOfRecordsIsGuarded(t *testing.T, p plane) {
	t.Helper()
	secrets := p.client(t).CoreV1().Secrets("credence-system")
	stored := need(secrets.Get(t.Context(), cluster.KeySecret, metav1.GetOptions{}))(t)
	dry := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	for what, change := range map[string]func(*corev1.Secret){
		"another key":  func(s *corev1.Secret) { s.Data["key"] = make([]byte, 32) },
		"no key":       func(s *corev1.Secret) { s.Data = nil },
		"not enforced": func(s *corev1.Secret) { delete(s.Data, "enforced") },
		"immutable":    func(s *corev1.Secret) { s.Immutable = new(true) },
		"a finalizer":  func(s *corev1.Secret) { s.Finalizers = []string{"e2e.example.com/x"} },
	} {
		changed := stored.DeepCopy()
		change(changed)
		_, err := secrets.Update(t.Context(), changed, dry)
		refused(t, what, err, "credence-records-key")
	}
	if got := do(t, p.as(t, controllerUser, "system:serviceaccounts"), "GET", "/api/v1/namespaces/credence-system/secrets/"+cluster.KeySecret, "", ""); got.Code != http.StatusForbidden {
		t.Errorf("the key controller reads the key of records: %d", got.Code)
	}
}

// definitionStays: the definition of records can't be changed so that it takes no more records.
func definitionStays(t *testing.T, p plane) {
	t.Helper()
	admin := p.config(t)
	const schema = "/spec/versions/0/schema/openAPIV3Schema"
	for what, patch := range map[string]string{
		"a short value":            `[{"op":"add","path":"` + schema + `/properties/value/maxLength","value":1}]`,
		"a short key":              `[{"op":"replace","path":"` + schema + `/properties/key/maxLength","value":1}]`,
		"a long value":             `[{"op":"add","path":"` + schema + `/properties/value/minLength","value":100000}]`,
		"a rule":                   `[{"op":"add","path":"` + schema + `/x-kubernetes-validations","value":[{"rule":"false"}]}]`,
		"a rule of a field":        `[{"op":"add","path":"` + schema + `/properties/value/x-kubernetes-validations","value":[{"rule":"false"}]}]`,
		"a pattern":                `[{"op":"add","path":"` + schema + `/properties/key/pattern","value":"^x$"}]`,
		"a default":                `[{"op":"add","path":"` + schema + `/properties/replaces/default","value":"x"}]`,
		"values that are few":      `[{"op":"add","path":"` + schema + `/properties/value/enum","value":["e30="]}]`,
		"a field that is required": `[{"op":"add","path":"` + schema + `/required/-","value":"replaces"}]`,
		"one field more":           `[{"op":"add","path":"` + schema + `/properties/more","value":{"type":"string"}}]`,
		"names that are short":     `[{"op":"add","path":"` + schema + `/properties/metadata","value":{"type":"object","properties":{"name":{"type":"string","maxLength":1}}}}]`,
		"none of":                  `[{"op":"add","path":"` + schema + `/properties/key/not","value":{"pattern":"^/"}}]`,
		"another format":           `[{"op":"replace","path":"` + schema + `/properties/value/format","value":"date"}]`,
	} {
		if got := do(t, admin, "PATCH", definitionPath+"?dryRun=All", "application/json-patch+json", patch); got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), "Credence") {
			t.Errorf("%s: %d %s", what, got.Code, got.Body)
		}
	}
	if got := do(t, admin, "PATCH", definitionPath+"?dryRun=All", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`); got.Code != http.StatusOK {
		t.Errorf("a label of the definition: %d %s", got.Code, got.Body)
	}
}
