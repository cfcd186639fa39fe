package e2e_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// TestCredentialsOfAPart tries what an attacker would do with the credentials of a part that was taken over: those that the part itself
// has on this machine. The attacks that succeed are listed with their parts, so that a right that is added makes the test fail.
func TestCredentialsOfAPart(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	wi := shared.create(t, namespace, "one", "aws", "a")
	root := shared.client(t)
	need(root.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, metav1.CreateOptions{}))(t)
	need(root.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, metav1.CreateOptions{}))(t)
	shared.keysSecret(t)
	documents := need(root.CoreV1().ConfigMaps("credence-system").Get(t.Context(), "credence-discovery", metav1.GetOptions{}))(t)
	documents.Data["jwks.json"], documents.ResourceVersion = `{"keys":[]}`, ""
	forged := need(json.Marshal(documents))(t)
	const ring = `{"metadata":{"name":"credence-keys"},"type":"identity.credence.dev/key-ring"}`
	const (
		core     = "/api/v1/namespaces"
		ours     = core + "/credence-system"
		rbac     = "/apis/rbac.authorization.k8s.io/v1"
		admit    = "/apis/admissionregistration.k8s.io/v1"
		dry      = "?dryRun=All"
		everyone = "apiserver controller agent webhook binder profiles discovery"
	)
	const pod = `{"metadata":{"generateName":"x-"},"spec":{"serviceAccountName":"default","containers":[{"name":"c","image":"i"}]}}`
	attacks := map[string]struct{ method, path, contentType, body, parts string }{
		"read the signing keys":            {"GET", ours + "/secrets/credence-keys", "", "", "apiserver controller"},
		"replace the signing keys":         {"PUT", ours + "/secrets/credence-keys" + dry, "application/json", ring, "apiserver controller"},
		"read a Secret of a team":          {"GET", core + "/" + namespace + "/secrets/plain", "", "", ""},
		"list all Secrets":                 {"GET", "/api/v1/secrets", "", "", ""},
		"a token of an identity":           {"POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`), ""},
		"an identity":                      {"POST", identitiesPath(namespace) + dry, "application/json", identityJSON("two", "aws", "a"), ""},
		"other audiences of an identity":   {"PATCH", identitiesPath(namespace) + "/one" + dry, mergePatch, `{"spec":{"audiences":["evil"]}}`, ""},
		"another subject":                  {"PATCH", identitiesPath(namespace) + "/one/status" + dry, mergePatch, `{"status":{"sub":"evil"}}`, ""},
		"read all identities":              {"GET", "/apis/authentication.gardener.cloud/v1alpha1/workloadidentities", "", "", "webhook profiles"},
		"forged documents":                 {"PUT", ours + "/configmaps/credence-discovery" + dry, "application/json", string(forged), "apiserver"},
		"rotate the keys":                  {"POST", ringPath + "/rotation" + dry, "application/json", commandJSON("KeyRotation", `{"algorithm":"ES256"}`), ""},
		"revoke a key":                     {"POST", ringPath + "/revocation" + dry, "application/json", commandJSON("KeyRevocation", `{"key":"x","reason":"x"}`), ""},
		"other terms of the keys":          {"PATCH", ringPath + dry, mergePatch, `{"spec":{"relyingParties":[]}}`, ""},
		"a pod":                            {"POST", core + "/" + namespace + "/pods" + dry, "application/json", pod, ""},
		"the pods of all namespaces":       {"GET", "/api/v1/pods?limit=1", "", "", "agent profiles"},
		"a pod by its name":                {"GET", core + "/" + namespace + "/pods/plain", "", "", "apiserver"},
		"the end of a pod":                 {"DELETE", core + "/" + namespace + "/pods/x", "", "", ""},
		"a command in a pod":               {"POST", ours + "/pods/x/exec?command=id", "", "", ""},
		"a token of another part":          {"POST", ours + "/serviceaccounts/credence-apiserver/token" + dry, "application/json", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`, ""},
		"the rights of an administrator":   {"POST", rbac + "/clusterrolebindings" + dry, "application/json", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`, ""},
		"more in a role of its own":        {"PATCH", rbac + "/clusterroles/credence:webhook" + dry, mergePatch, `{"rules":[]}`, ""},
		"the label of a namespace":         {"PATCH", core + "/" + namespace + dry, mergePatch, `{"metadata":{"labels":{"` + v1alpha1.LabelNamespaceIdentities + `":"` + v1alpha1.NamespaceEnabled + `"}}}`, "profiles"},
		"the annotation of an account":     {"PATCH", core + "/" + namespace + "/serviceaccounts/default" + dry, mergePatch, `{"metadata":{"annotations":{"` + v1alpha1.AnnotationAccountIdentities + `":"one"}}}`, ""},
		"a guard that is taken away":       {"DELETE", admit + "/validatingadmissionpolicybindings/credence-agent-secrets" + dry, "", "", ""},
		"a webhook that is taken away":     {"DELETE", admit + "/mutatingwebhookconfigurations/credence-webhook" + dry, "", "", ""},
		"the API that is served elsewhere": {"PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.authentication.gardener.cloud" + dry, mergePatch, `{"spec":{"service":{"name":"evil"}}}`, ""},
		"the kubelet of a node":            {"GET", "/api/v1/nodes/x/proxy/pods", "", "", ""},
		"a certificate":                    {"POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests" + dry, "application/json", `{"metadata":{"generateName":"x-"},"spec":{"request":"eA==","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}`, ""},
		"rights of others":                 {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", `{"spec":{"user":"jane","nonResourceAttributes":{"path":"/","verb":"get"}}}`, "apiserver agent webhook profiles"},
	}
	for _, part := range strings.Fields(everyone) {
		config := need(clientcmd.BuildConfigFromFlags("", filepath.Join(shared.Dir, "pki", part, "kubeconfig")))(t)
		for _, what := range slices.Sorted(maps.Keys(attacks)) {
			attack := attacks[what]
			got := do(t, config, attack.method, attack.path, attack.contentType, attack.body)
			let := slices.Contains(strings.Fields(attack.parts), part)
			if let && got.Code >= 300 || !let && got.Code != http.StatusForbidden {
				t.Errorf("%s, as the %s: %d, want it let through: %v: %.300s", what, part, got.Code, let, got.Body)
			}
		}
		// Nor may a part become another user.
		config.Impersonate.UserName = "system:admin"
		expect(t, do(t, config, "GET", core, "", "").is(http.StatusForbidden), "the "+part+" became another user")
	}
	if now := shared.read(t, identitiesPath(namespace)+"/one"); now.Status.Sub != wi.Status.Sub {
		t.Errorf("the subject was %s and is %s", wi.Status.Sub, now.Status.Sub)
	}
}

// Clouds trust a subject. A user who may edit a namespace gets another one, under the name of an identity that was deleted, whatever
// uid and subject the object has.
func TestASubjectIsNotReused(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	before := shared.create(t, namespace, "one", "aws", "a")
	issued := token(t, shared.config(t), namespace, "one", `{}`).Status.Token
	editor := "editor-" + namespace
	shared.bind(t, namespace, "edit", user(editor))
	config := shared.as(t, editor)
	eventually(t, func() error {
		if got := do(t, config, "DELETE", identitiesPath(namespace)+"/one", "", ""); got.Code != http.StatusOK {
			return errors.New(string(got.Body))
		}
		return nil
	})
	forged := `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"one","uid":"` + string(before.UID) + `"},` +
		`"spec":{"audiences":["evil"],"targetSystem":{"type":"generic"}},"status":{"sub":"` + before.Status.Sub + `"}}`
	for _, attack := range []struct{ method, path, contentType string }{
		{"POST", "", "application/json"},
		{"PATCH", "/one?fieldManager=m&force=true", "application/apply-patch+yaml"},
	} {
		got := do(t, config, attack.method, identitiesPath(namespace)+attack.path, attack.contentType, forged)
		if got.Code >= 300 {
			continue // nothing is made
		}
		made := shared.read(t, identitiesPath(namespace)+"/one")
		if made.UID == before.UID || made.Status.Sub == before.Status.Sub {
			t.Errorf("%s: %d, with the uid %q and the subject %q of the identity that was deleted", attack.method, got.Code, made.UID, made.Status.Sub)
		}
		after := token(t, shared.config(t), namespace, "one", `{}`)
		_, was := claims(t, issued)
		if _, is := claims(t, after.Status.Token); is["sub"] == was["sub"] {
			t.Errorf("%s: a token for the subject %v of the identity that was deleted", attack.method, is["sub"])
		}
	}
}
