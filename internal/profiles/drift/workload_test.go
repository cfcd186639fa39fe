package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// deploymentOf is one of an account, whose selector is app: name.
func deploymentOf(name, account string) string {
	return fmt.Sprintf(`{"metadata":{"name":%[1]q,"uid":%[1]q},"spec":{"replicas":1,"selector":{"matchLabels":{"app":%[1]q}},"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"serviceAccountName":%[2]q}}}}`, name, account)
}

// setOf is a ReplicaSet of a Deployment.
func setOf(deployment string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[1]s-1","uid":"%[1]s-1","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":%[1]q,"uid":%[1]q,"controller":true}]}}`, deployment)
}

// api answers lists, and counts the requests for each path.
func api(t *testing.T, lists map[string][]string) (*cluster.API, map[string]int) {
	t.Helper()
	requests := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++
		items, known := lists[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(server.Close)
	opened := testkit.Need(cluster.New(&rest.Config{Host: server.URL, QPS: -1}))(t)
	return opened, requests
}

func ownedBy(kind, name string, labels map[string]string) pod {
	p := drifted("p", "w", true)
	p.labels = labels
	p.controller = &metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
	return p
}

// A workload is restarted for pods that it has: of its account, of its selector, and of a Deployment by way of a ReplicaSet. Each kind is read once,
// however many owners the pods have.
func TestWorkloadsOfPods(t *testing.T) {
	const apps = "/apis/apps/v1/namespaces/n/"
	opened, requests := api(t, map[string][]string{
		apps + "deployments":  {deploymentOf("own", "web"), deploymentOf("victim", "other"), deploymentOf("default", "")},
		apps + "replicasets":  {setOf("own"), setOf("victim"), setOf("default")},
		apps + "statefulsets": {deploymentOf("set", "web")},
	})
	around := &neighborhood{api: opened, namespace: "n"}
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	for name, test := range map[string]struct {
		pod   pod
		found string
	}{
		"its own":                      {ownedBy("ReplicaSet", "own-1", app("own")), "Deployment own"},
		"a StatefulSet":                {ownedBy("StatefulSet", "set", app("set")), "StatefulSet set"},
		"another account's":            {ownedBy("ReplicaSet", "victim-1", app("victim")), ""},
		"of the default account":       {ownedBy("ReplicaSet", "default-1", app("default")), ""},
		"a Deployment itself":          {ownedBy("Deployment", "own", app("own")), ""},
		"labels of another workload":   {ownedBy("ReplicaSet", "own-1", app("set")), ""},
		"an owner that is gone":        {ownedBy("ReplicaSet", "gone", app("own")), ""},
		"an owner with a bad name":     {ownedBy("ReplicaSet", "a/b", app("own")), ""},
		"a kind that is not restarted": {ownedBy("Job", "own", app("own")), ""},
		"none":                         {drifted("p", "", true), ""},
	} {
		found, alone, err := rollouts(t.Context(), around, "web", []pod{test.pod}, nil)
		got := ""
		for _, r := range found {
			got += r.String()
		}
		if err != nil || got != test.found || (alone == 1) != (test.found == "") {
			t.Errorf("%s: found %q and %d without, %v", name, got, alone, err)
		}
	}
	// The workload that was restarted last is the account's no longer.
	if found, _, err := rollouts(t.Context(), around, "web", nil, &accounts.ProfileRestart{Kind: "Deployment", Name: "victim", UID: "victim"}); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
	many := make([]pod, 200)
	for i := range many {
		many[i] = ownedBy("ReplicaSet", fmt.Sprint("bare-", i), nil)
	}
	if _, alone, err := rollouts(t.Context(), around, "web", many, nil); err != nil || alone != len(many) {
		t.Errorf("%d without a workload, %v", alone, err)
	}
	if counts := slices.Collect(maps.Values(requests)); len(counts) != 3 || slices.Max(counts) != 1 {
		t.Errorf("requests: %v", requests)
	}
}

// The status has what a look found about pods, even if deciding what to do about them failed.
func TestStatusOfUndecided(t *testing.T) {
	opened, _ := api(t, nil)
	written := ""
	scheme := runtime.NewScheme()
	testkit.Must(t, accounts.AddToScheme(scheme))
	profile := &accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "u"}, Spec: accounts.ServiceAccountProfileSpec{OnChange: accounts.OnChangeEvict}}
	c := &Controller{
		Clusters: cluster.Both{Workload: opened}, Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Events: record.NewFakeRecorder(9), Periods: DefaultPeriods, Clock: clock.RealClock{},
		memories: map[types.UID]*memory{"u": {since: time.Now().Add(-time.Hour)}},
		client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			SubResourceApply: func(_ context.Context, _ client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
				content, err := json.Marshal(o)
				written = string(content)
				return err
			},
		}).Build(),
	}
	found := &sight{total: 1, drifted: []pod{drifted("p", "w", true)}}
	decided, err := c.plan(t.Context(), profile, found, &neighborhood{api: opened, namespace: "n"}, true)
	acts := decided.urgent(profile)
	if failure := c.writeInTurn(t.Context(), c.queue([]*report{reportOf(profile, found, decided)})); failure != nil {
		t.Error(failure)
	}
	if err == nil || acts || !strings.Contains(written, ReasonOutOfSpec) || !strings.Contains(written, "could not be decided: list the replicasets of namespace n") {
		t.Errorf("acts %v, written %s, %v", acts, written, err)
	}
}
