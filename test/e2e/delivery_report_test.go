package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// An identity shows its delivery to users who may view it, without a right to Secrets, and when it is deleted.
func TestIdentityShowsItsDelivery(t *testing.T) {
	t.Parallel()
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	shared.awsIdentity(t, namespace, "banana", "dev")
	shared.letAgent(t, namespace)
	root, viewer := shared.client(t), "viewer-"+namespace
	shared.bind(t, namespace, "view", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: viewer})
	as := func(args ...string) string {
		t.Helper()
		return shared.must(t, "", "kubectl", append([]string{"-n", namespace, "--as", viewer}, args...)...)
	}
	eventually(t, func() error {
		if out := shared.must(t, "", "kubectl", "auth", "can-i", "get", "workloadidentities", "-n", namespace, "--as", viewer); out != "yes\n" {
			return errors.New(out)
		}
		return nil
	})
	if out := as("get", "wi", "banana", "-o", `jsonpath={.status.conditions[?(@.type=="Delivered")].status}`); out != "Unknown" {
		t.Errorf("Delivered is %s before there is a Secret", out)
	}
	if out := shared.must(t, "", "kubectl", "-n", namespace, "delete", "wi", "banana", "--dry-run=server"); strings.Contains(out, "in use") {
		t.Errorf("an identity that nothing uses: %s", out)
	}

	must(t, errOf(root.CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret("s", namespace, "banana"), metav1.CreateOptions{})))
	as("wait", "wi/banana", "--for=condition=Delivered", "--timeout=5m")
	as("wait", "wi/banana", "--for=condition=Ready", "--timeout=5m")
	row := strings.Fields(strings.Split(as("get", "wi", "banana"), "\n")[1])
	if row[1] != "True" || row[2] != "1/1" || !strings.HasSuffix(row[3], "m") {
		t.Errorf("columns: %v", row)
	}
	if out, _, _ := shared.command(t, "", "credence", "get", "-n", namespace, "--as", viewer); !strings.Contains(out, "(1 of 1)") {
		t.Errorf("credence get without a right to Secrets:\n%s", out)
	}
	_, warning, _ := shared.command(t, "", "kubectl", "-n", namespace, "delete", "wi", "banana", "--dry-run=server")
	if !strings.Contains(warning, "Warning: WorkloadIdentity "+namespace+"/banana is in use: 1 Secrets") {
		t.Errorf("a deletion warns: %s", warning)
	}
	all := do(t, shared.config(t), "DELETE", identitiesPath(namespace)+"?dryRun=All", "", "")
	if all.Code != 200 || !strings.Contains(all.Header.Get("Warning"), "/banana is in use: 1 Secrets") {
		t.Errorf("a deletion of all: %d, warning %q", all.Code, all.Header.Get("Warning"))
	}

	// Nothing but status has changed, by the agent's own entry.
	wi := shared.identity(t, namespace, "banana")
	if len(wi.Status.Deliveries) != 1 || wi.Status.Deliveries[0].Reporter != agentUser || wi.Generation != 1 || !strings.Contains(wi.Status.Sub, namespace+":banana:"+string(wi.UID)) {
		t.Errorf("the identity is %+v", wi)
	}
}

func (p plane) identity(t *testing.T, namespace, name string) v1alpha1.WorkloadIdentity {
	t.Helper()
	got := do(t, p.config(t), "GET", identitiesPath(namespace)+"/"+name, "", "")
	var wi v1alpha1.WorkloadIdentity
	if err := json.Unmarshal([]byte(got.Body), &wi); err != nil || got.Code != 200 {
		t.Fatalf("identity: %d %s, %v", got.Code, got.Body, err)
	}
	return wi
}

// TestWhatReportersMayChange takes the part of agents that an attacker has taken over.
func TestWhatReportersMayChange(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.awsIdentity(t, namespace, "banana", "dev")
	before := shared.identity(t, namespace, "banana")
	users := map[string]*rest.Config{}
	for _, name := range []string{"one-" + namespace, "two-" + namespace, "other-" + namespace} {
		users[name] = shared.as(t, name)
		if !strings.HasPrefix(name, "other") {
			shared.bind(t, namespace, "credence:agent:identities", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name})
		}
	}
	one, two := "one-"+namespace, "two-"+namespace
	report := func(user, metadata, spec string) response {
		return do(t, users[user], "POST", identitiesPath(namespace)+"/banana/delivery", "application/json",
			`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"DeliveryReport","metadata":{`+metadata+`},"spec":{`+spec+`}}`)
	}
	eventually(t, func() error {
		if got := report(one, "", `"secrets":2,"delivered":0`); got.Code != 201 {
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
		return nil
	})
	eventually(t, func() error {
		if got := report(two, "", `"secrets":1,"delivered":0,"failure":{"reason":"UseDenied","message":"why"}`); got.Code != 201 {
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
		return nil
	})
	for what, test := range map[string]struct {
		got  response
		code int
	}{
		"the same again":              {report(one, "", `"secrets":2,"delivered":0`), 201},
		"another within a minute":     {report(one, "", `"secrets":3,"delivered":0`), 429},
		"taken away within a minute":  {report(one, "", `"secrets":0,"delivered":0`), 429},
		"of another uid":              {report(one, `"uid":"x"`, `"secrets":3,"delivered":0`), 409},
		"of another name":             {report(one, `"name":"cherry"`, `"secrets":3,"delivered":0`), 400},
		"without sense":               {report(one, "", `"secrets":1,"delivered":2`), 422},
		"of one without the right":    {report("other-"+namespace, "", `"secrets":1,"delivered":0`), 403},
		"of an identity that is gone": {do(t, users[one], "POST", identitiesPath(namespace)+"/cherry/delivery", "application/json", `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"DeliveryReport","spec":{"secrets":1,"delivered":0}}`), 404},
		"the status, replaced":        {do(t, users[one], "PATCH", identitiesPath(namespace)+"/banana", "application/merge-patch+json", `{"status":{"sub":"x"}}`), 403},
		"the status as a subresource": {do(t, users[one], "PATCH", identitiesPath(namespace)+"/banana/status", "application/merge-patch+json", `{"status":{"sub":"x"}}`), 403},
		"the report, replaced":        {do(t, users[one], "PATCH", identitiesPath(namespace)+"/banana/delivery", "application/merge-patch+json", `{}`), 403},
		"the identity":                {do(t, users[one], "DELETE", identitiesPath(namespace)+"/banana", "", ""), 403},
		"the status, by its owner":    {do(t, shared.config(t), "PATCH", identitiesPath(namespace)+"/banana", "application/merge-patch+json", `{"status":{"sub":"x","issuer":"y","deliveries":[],"conditions":[]}}`), 200},
	} {
		if test.got.Code != test.code {
			t.Errorf("%s: %d %s, want %d", what, test.got.Code, test.got.Body, test.code)
		}
	}
	after := shared.identity(t, namespace, "banana")
	if after.Status.Sub != before.Status.Sub || after.Status.Issuer != before.Status.Issuer || after.Generation != before.Generation || len(after.Status.Deliveries) != 2 ||
		after.Status.Deliveries[0].Reporter != one || after.Status.Deliveries[0].Secrets != 2 || after.Status.Deliveries[1].Reporter != two {
		t.Errorf("the identity is %+v", after)
	}
	if ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != "UseDenied" {
		t.Errorf("Ready is %+v", ready)
	}
}
