package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

const workloadClustersPath = "/apis/identity.credence.dev/v1alpha1/workloadclusters"

func workloadCluster(name string, users, namespaces []string) string {
	body, err := json.Marshal(identityv1alpha1.WorkloadCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: "identity.credence.dev/v1alpha1", Kind: "WorkloadCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       identityv1alpha1.WorkloadClusterSpec{Users: users, Identities: identityv1alpha1.WorkloadClusterIdentities{Namespaces: namespaces}},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// joinCluster makes a WorkloadCluster for the test's time.
func (p plane) joinCluster(t *testing.T, name string, users, namespaces []string) identityv1alpha1.WorkloadCluster {
	t.Helper()
	got := do(t, p.config(t), "POST", workloadClustersPath, "application/json", workloadCluster(name, users, namespaces))
	var made identityv1alpha1.WorkloadCluster
	if err := json.Unmarshal(got.Body, &made); err != nil || got.Code != http.StatusCreated {
		t.Fatalf("make WorkloadCluster %s: %d %s", name, got.Code, got.Body)
	}
	p.forgetCluster(t, name)
	return made
}

// forgetCluster deletes a WorkloadCluster at the end of the test.
func (p plane) forgetCluster(t *testing.T, name string) {
	t.Cleanup(func() {
		// A test may have deleted it before.
		_ = p.client(t).CoreV1().RESTClient().Delete().AbsPath(workloadClustersPath, name).Do(context.WithoutCancel(t.Context())).Error()
	})
}

// joined is the user that an account of joined clusters is.
func joined(account string) string {
	return "system:serviceaccount:" + identityv1alpha1.WorkloadClusters + ":" + account
}

// The tokens of a workload cluster name it, and are of its namespaces; whatever it asserts is of itself.
func TestWorkloadClusters(t *testing.T) {
	inTurn(t)
	ours, theirs := shared.namespace(t), shared.namespace(t)
	for _, namespace := range []string{ours, theirs} {
		shared.create(t, namespace, "one", "generic", "a")
		for _, name := range []string{"east", "west", "plain"} {
			shared.bind(t, namespace, "credence:agent:identities", user(name+"-of-"+ours))
		}
		shared.bind(t, namespace, "credence:workloadidentities:token-creator", user("east-webhook-of-"+ours))
	}
	east, west, plain := "east-of-"+ours, "west-of-"+ours, "plain-of-"+ours
	made := shared.joinCluster(t, east, []string{east, "east-webhook-of-" + ours}, []string{ours})
	shared.joinCluster(t, west, []string{west}, []string{ours, theirs})
	self := map[string]any{"name": east, "uid": string(made.UID)}
	request := func(caller *rest.Config, namespace, spec string) response {
		return do(t, caller, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(spec))
	}
	seedOf := func(got response) any {
		_, c := claims(t, decodeTokenRequest(t, got).Status.Token)
		return c["gardener.cloud"].(map[string]any)["seed"]
	}
	var got response
	eventually(t, func() error {
		if got = request(shared.as(t, east), ours, `{}`); got.Code != http.StatusCreated {
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
		if diff := cmp.Diff(any(self), seedOf(got)); diff != "" {
			return fmt.Errorf("claim seed (-want +got):\n%s", diff)
		}
		return nil
	})
	if got := request(shared.as(t, plain), ours, `{}`); got.Code != http.StatusCreated || seedOf(got) != nil {
		t.Errorf("a user of no cluster: %d %s", got.Code, got.Body)
	}

	t.Log("namespaces that RBAC gives, and the cluster does not")
	if got := request(shared.as(t, east), theirs, `{}`); got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), "may not have identities of the namespace "+theirs) {
		t.Errorf("an identity of another namespace: %d %s", got.Code, got.Body)
	}
	if got := do(t, shared.as(t, east), "POST", tokenPath(theirs, "absent"), "application/json", tokenRequest(`{}`)); got.Code != http.StatusForbidden {
		t.Errorf("an identity of another namespace that does not exist: %d %s", got.Code, got.Body)
	}
	if got := request(shared.as(t, west), theirs, `{}`); got.Code != http.StatusCreated {
		t.Errorf("an identity of the other cluster: %d %s", got.Code, got.Body)
	}

	t.Log("reports")
	lost := joined("lost-of-" + ours)
	shared.bind(t, ours, "credence:agent:identities", user(lost))
	report := func(caller, namespace string) response {
		return do(t, shared.as(t, caller), "POST", identitiesPath(namespace)+"/one/delivery", "application/json",
			`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"DeliveryReport","spec":{"secrets":1,"delivered":0}}`)
	}
	expect(t, wantAnswer(report(east, theirs), http.StatusForbidden, "may not have identities of the namespace "+theirs))
	eventually(t, func() error { return wantAnswer(report(east, ours), http.StatusCreated, "") })
	byContexts := "contexts-of-" + ours
	shared.bind(t, theirs, "credence:agent:identities", user(byContexts))
	must(t, do(t, shared.config(t), "POST", workloadClustersPath, jsonBody,
		strings.Replace(workloadCluster(byContexts, []string{byContexts}, []string{ours}), `"identities":{`, `"identities":{"fromContexts":true,`, 1)).is(http.StatusCreated), "a cluster with fromContexts")
	shared.forgetCluster(t, byContexts)
	eventually(t, func() error {
		return wantAnswer(report(byContexts, theirs), http.StatusForbidden, "that no object on it uses")
	})
	eventually(t, func() error { return wantAnswer(report(lost, ours), http.StatusForbidden, "is in no WorkloadCluster") })
	for namespace, want := range map[string]int{ours: 1, theirs: 0} {
		if got := shared.identity(t, namespace, "one").Status.Deliveries; len(got) != want || want == 1 && got[0].Reporter != east {
			t.Errorf("%s/one has the reports %+v", namespace, got)
		}
	}

	t.Log("accounts that an agent names")
	account := need(shared.client(t).CoreV1().ServiceAccounts(ours).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{}))(t)
	shared.letUse(t, ours, "system:serviceaccount:"+ours+":cart")
	shared.createProfile(t, ours, "cart", `{}`)
	shared.awaitProfile(t, ours, "cart", "UsernameUnique", "UsernameUnique")
	naming := func(uid string) string {
		return fmt.Sprintf(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"cart","namespace":%q,"uid":%q}}`, ours, uid)
	}
	// Also the name and the uid of an account of the identity cluster become those of an account of the caller's cluster.
	for _, uid := range []string{"uid-of-another-cluster", string(account.UID)} {
		got := request(shared.as(t, east), ours, naming(uid))
		if got.Code != http.StatusCreated {
			t.Fatalf("an account of the cluster: %d %s", got.Code, got.Body)
		}
		_, c := claims(t, decodeTokenRequest(t, got).Status.Token)
		want := map[string]any{"namespace": ours, "serviceaccount": map[string]any{"name": "cart", "uid": uid}, "cluster": self}
		if diff := cmp.Diff(any(want), c["kubernetes.io"]); diff != "" {
			t.Errorf("claim kubernetes.io (-want +got):\n%s", diff)
		}
		if c["identity.credence.dev"] != nil {
			t.Errorf("an account of another cluster has the username %v of this one's", c["identity.credence.dev"])
		}
	}
	for name, test := range map[string]struct {
		caller, spec string
		code         int
	}{
		"without the verb assert":     {"east-webhook-of-" + ours, naming("u"), http.StatusForbidden},
		"of no cluster, absent":       {plain, naming("u"), http.StatusConflict},
		"a uid that no JSON carries":  {east, naming("a b"), http.StatusUnprocessableEntity},
		"a uid of control characters": {east, naming("a\u0007"), http.StatusUnprocessableEntity},
	} {
		if got := request(shared.as(t, test.caller), ours, test.spec); got.Code != test.code {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, test.code)
		}
	}

	t.Log("what a cluster can't be")
	config := shared.config(t)
	shared.bindCluster(t, "writer-of-"+ours, "credence:workloadclusters:operator")
	shared.bind(t, ours, "credence:workloadidentities:token-creator", user("writer-of-"+ours))
	for name, test := range map[string]struct {
		caller *rest.Config
		body   string
		code   int
		text   string
	}{
		"a user of another cluster":     {config, workloadCluster("x-"+ours, []string{east}, nil), http.StatusUnprocessableEntity, "is a user of WorkloadCluster " + east},
		"a user twice":                  {config, workloadCluster("x-"+ours, []string{"a", "a"}, nil), http.StatusUnprocessableEntity, "spec.users[1]"},
		"no user":                       {config, workloadCluster("x-"+ours, []string{""}, nil), http.StatusUnprocessableEntity, "spec.users[0]"},
		"anonymous":                     {config, workloadCluster("x-"+ours, []string{"system:anonymous"}, nil), http.StatusUnprocessableEntity, "authenticated"},
		"not a namespace":               {config, workloadCluster("x-"+ours, nil, []string{"*"}), http.StatusUnprocessableEntity, "spec.identities.namespaces[0]"},
		"a long name":                   {config, workloadCluster(strings.Repeat("x", 253), nil, nil), http.StatusUnprocessableEntity, "metadata.name"},
		"a namespace that they have":    {shared.as(t, "writer-of-"+ours), workloadCluster("w-"+ours, []string{joined("w-" + ours)}, []string{ours}), http.StatusCreated, ""},
		"a user whom they can't be":     {shared.as(t, "writer-of-"+ours), workloadCluster("x-"+ours, []string{plain}, nil), http.StatusForbidden, "cannot impersonate user"},
		"an account that they can't be": {shared.as(t, "writer-of-"+ours), workloadCluster("x-"+ours, []string{"system:serviceaccount:" + ours + ":cart"}, nil), http.StatusForbidden, "cannot impersonate user"},
		"the agent of this cluster":     {config, workloadCluster("x-"+ours, []string{"system:serviceaccount:credence-system:credence-agent"}, nil), http.StatusUnprocessableEntity, "must not be a part of Credence"},
		"a namespace that they have no": {shared.as(t, "writer-of-"+ours), workloadCluster("x-"+ours, []string{joined("x-" + ours)}, []string{ours, theirs}), http.StatusForbidden, "in namespace " + theirs},
		"all namespaces by contexts":    {shared.as(t, "writer-of-"+ours), strings.Replace(workloadCluster("x-"+ours, nil, nil), `"identities":{`, `"identities":{"fromContexts":true`, 1), http.StatusForbidden, "in all namespaces"},
	} {
		if got := do(t, test.caller, "POST", workloadClustersPath, "application/json", test.body); got.Code != test.code || !strings.Contains(string(got.Body), test.text) {
			t.Errorf("%s: %d %s, want %d with %q", name, got.Code, got.Body, test.code, test.text)
		}
	}
	shared.forgetCluster(t, "w-"+ours)
	// A server-side apply creates, too.
	for body, want := range map[string]int{
		workloadCluster("x-"+ours, []string{joined("x-" + ours)}, []string{ours, theirs}): http.StatusForbidden,
		workloadCluster("x-"+ours, []string{east}, []string{ours}):                        http.StatusUnprocessableEntity,
	} {
		if got := do(t, shared.as(t, "writer-of-"+ours), "PATCH", workloadClustersPath+"/x-"+ours+"?fieldManager=writer", applyPatch, body); got.Code != want {
			t.Errorf("apply %s: %d %s, want %d", body, got.Code, got.Body, want)
		}
	}
	// An update opens as much as a new object does; one that opens nothing needs no right.
	for patch, want := range map[string]int{
		`{"spec":{"identities":{"namespaces":["` + ours + `","` + theirs + `"]}}}`: http.StatusForbidden,
		`{"metadata":{"labels":{"a":"b"}}}`:                                        http.StatusOK,
		`{"spec":{"users":["` + west + `"]}}`:                                      http.StatusUnprocessableEntity,
	} {
		if got := do(t, shared.as(t, "writer-of-"+ours), "PATCH", workloadClustersPath+"/w-"+ours, mergePatch, patch); got.Code != want {
			t.Errorf("%s: %d %s, want %d", patch, got.Code, got.Body, want)
		}
	}
	expect(t, wantAnswer(do(t, config, "PATCH", workloadClustersPath+"/w-"+ours, mergePatch, `{"spec":{"users":["`+joined("w-"+ours)+`","`+west+`"]}}`), 422, "spec.users[1]"), "a user of another cluster, behind one of this")
	if got := do(t, shared.as(t, "writer-of-"+ours), "PATCH", workloadClustersPath+"/"+west, mergePatch, `{"spec":{"users":["`+west+`","`+joined("another")+`"]}}`); got.Code != http.StatusForbidden {
		t.Errorf("a user more of a cluster with another namespace: %d %s", got.Code, got.Body)
	}
}
