package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// bindingIs waits until the condition Ready of a binding has a reason.
func (p plane) bindingIs(t *testing.T, namespace, name, reason, message string) {
	t.Helper()
	eventually(t, func() error {
		ready := meta.FindStatusCondition(p.credentialsBinding(t, namespace, name).Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) || (ready.Status == "True") != (reason == "Found") {
			return fmt.Errorf("binding %s is %+v, want %s with %q", name, ready, reason, message)
		}
		return nil
	})
}

// Helm, Flux, Argo CD and kubectl sort kinds that they do not know by name: a CredentialsBinding comes before its WorkloadIdentity.
func TestBindingBeforeItsIdentity(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	jane := "jane-" + namespace
	shared.letEdit(t, namespace, jane)
	shared.must(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"use"},"rules":[
		{"apiGroups":["authentication.gardener.cloud"],"resources":["workloadidentities"],"verbs":["use"],"resourceNames":["later","refused","google"]}]}`, "kubectl", "-n", namespace, "create", "-f", "-")
	shared.must(t, "", "kubectl", "-n", namespace, "create", "rolebinding", "use", "--role=use", "--user="+jane)
	shared.untilAllowed(t, namespace, jane, "create", credentialsBindings, "")
	for _, name := range []string{"later", "refused", "google"} {
		shared.untilAllowed(t, namespace, jane, "use", workloadIdentities, name)
	}
	config, path := shared.as(t, jane), bindingsPath(namespace)
	to := func(name string) string {
		return bindingJSON("to-"+name, fmt.Sprintf(`,"workloadIdentityRef":{"name":%q}`, name))
	}

	// Without the right the answer does not depend on the identity.
	shared.create(t, namespace, "foreign", "aws", "a")
	there, gone := do(t, config, "POST", path, "application/json", to("foreign")), do(t, config, "POST", path, "application/json", strings.Replace(to("absent"), "to-absent", "to-foreign", 1))
	if there.Code != 403 || string(there.Body) != string(gone.Body) {
		t.Errorf("without the right: %d %s, and of one that does not exist %d %s", there.Code, there.Body, gone.Code, gone.Body)
	}

	for _, query := range []string{"?dryRun=All", ""} {
		for _, name := range []string{"later", "refused", "google"} {
			got := do(t, config, "POST", path+query, "application/json", to(name))
			if got.Code != 201 || !strings.Contains(got.Header.Get("Warning"), "WorkloadIdentity "+namespace+"/"+name+" does not exist yet") {
				t.Errorf("%s%s: %d %s, warnings %q", name, query, got.Code, got.Body, got.Header.Values("Warning"))
			}
		}
	}
	shared.bindingIs(t, namespace, "to-later", "NotFound", "does not exist")

	// Each token is requested the moment its identity is there: nothing has looked at the binding before.
	token := func(name, binding string) response {
		by := fmt.Sprintf(`"metadata":{"annotations":{%q:%q}},"spec"`, v1alpha1.AnnotationBinding, namespace+"/"+binding)
		return do(t, shared.config(t), "POST", tokenPath(namespace, name), "application/json", strings.Replace(tokenRequest(`{}`), `"spec"`, by, 1))
	}
	wanted := func(name string, code int, words string) {
		t.Helper()
		if err := wantAnswer(token(name, "to-"+name), code, words); err != nil {
			t.Errorf("a token of %s: %v", name, err)
		}
	}
	create := func(name, kind, account string) {
		t.Helper()
		text := identityJSON(name, kind, "a")
		if account != "" {
			text = strings.Replace(text, `"type":"aws"`, `"type":"aws","providerConfig":{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::`+account+`:role/a"}`, 1)
		}
		if got := do(t, shared.config(t), "POST", identitiesPath(namespace), "application/json", text); got.Code != 201 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	create("google", "gcp", "")
	wanted("google", 409, "does not refer to it, or its condition Ready has why")
	shared.bindingIs(t, namespace, "to-google", "OtherProvider", "is for gcp, and the binding for aws")
	create("later", "aws", "112233445566")
	wanted("later", 201, "token")
	shared.bindingIs(t, namespace, "to-later", "Found", namespace+"/later")

	// The right is reviewed again when the identity appears, for the user who wrote the reference.
	shared.must(t, "", "kubectl", "-n", namespace, "delete", "rolebinding", "use")
	eventually(t, func() error {
		return wantAnswer(do(t, config, "POST", path+"?dryRun=All", "application/json", strings.Replace(to("refused"), "to-refused", "again", 1)), 403, "cannot use")
	})
	create("refused", "aws", "")
	wanted("refused", 409, "does not refer to it")
	shared.bindingIs(t, namespace, "to-refused", "WriterNotAllowed", jane)
	wanted("later", 201, "token") // it was accepted before
	shared.must(t, "", "kubectl", "-n", namespace, "annotate", "cb", "to-refused", "a=b")
	wanted("refused", 409, "does not refer to it") // another write of the same reference changes nothing
	shared.must(t, "", "kubectl", "-n", namespace, "delete", "wi", "refused")

	// A status can't be written by users, not even by an admin.
	do(t, shared.config(t), "PATCH", path+"/to-google", "application/merge-patch+json", `{"status":{"credentialsUID":"u1","writer":{"username":"root"}}}`)
	if status := shared.credentialsBinding(t, namespace, "to-google").Status; status.CredentialsUID != "" || status.Writer.Username != jane {
		t.Errorf("status %+v", status)
	}

	// Another identity of the binding is of the same account, whichever is written first.
	if got := do(t, shared.config(t), "PATCH", path+"/to-later", "application/merge-patch+json", `{"workloadIdentityRef":{"name":"moved"}}`); got.Code != 200 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	shared.bindingIs(t, namespace, "to-later", "NotFound", namespace+"/moved")
	create("moved", "aws", "998877665544")
	shared.bindingIs(t, namespace, "to-later", "OtherAccount", `is "arn:aws:iam::998877665544", and was "arn:aws:iam::112233445566"`)
	expect(t, wantAnswer(token("moved", "to-later"), 409, "does not refer to it"), "a token of another account")
}
