package survey

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/test/testkit"
)

// shop has an account with an identity, and one without; none of the pods has what the webhook adds.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {identity.credence.dev/workload-identities: enabled}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: cart, annotations: {identity.credence.dev/workload-identities: store}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: plain}
---
apiVersion: authentication.gardener.cloud/v1alpha1
kind: WorkloadIdentity
metadata: {namespace: shop, name: store}
spec: {audiences: [a], targetSystem: {type: generic}}
---
{kind: Use, user: "system:serviceaccount:shop:cart", identity: shop/store}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: b, uid: b}
spec: {serviceAccountName: cart, nodeName: node-1, containers: [{name: main, image: i}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: a, uid: a}
spec: {serviceAccountName: plain, nodeName: node-1, containers: [{name: main, image: i}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: ended, uid: e}
spec: {serviceAccountName: cart, nodeName: node-1, containers: [{name: main, image: i}]}
status: {phase: Succeeded}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: c, uid: c}
spec: {serviceAccountName: deleted, nodeName: node-1, containers: [{name: main, image: i}]}
status: {phase: Running}`

// Pods that have ended are not looked at, and a fact that the user may not read leaves a pod unknown.
func TestSurvey(t *testing.T) {
	deny := func(verb, resource string) string {
		return "\n---\n{kind: Deny, verb: " + verb + ", resource: " + resource + "}"
	}
	for name, test := range map[string]struct {
		denied  string
		states  map[string]int
		notes   []string
		partial bool
	}{
		"all is read":       {"", map[string]int{drift.Current: 1, drift.Stale: 1, drift.Refused: 1}, nil, false},
		"one by one":        {deny("list", "serviceaccounts") + deny("list", "workloadidentities"), map[string]int{drift.Current: 1, drift.Stale: 1, drift.Refused: 1}, nil, false},
		"identities unread": {deny("list", "workloadidentities") + deny("get", "workloadidentities"), map[string]int{drift.Current: 1, drift.Refused: 1, drift.Unknown: 1}, []string{`1 pod is unknown: user "jane" lacks the verb "get" on "workloadidentities"`}, false},
		"one namespace":     {"\n---\n{kind: Deny, verb: list, resource: pods, namespaces: all}", map[string]int{drift.Current: 1, drift.Stale: 1, drift.Refused: 1}, []string{"namespace shop"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := clustertest.Open(t, clustertest.Cluster{Objects: shop + test.denied})
			looked := 0
			report := testkit.Need(Read(t.Context(), cluster.Both{Workload: api, Identity: api}, "", "shop", func(pods int) { looked = pods }))(t)
			if len(report.States) != len(drift.States()) {
				t.Errorf("states %v: each is shown, also of no pods", report.States)
			}
			maps.DeleteFunc(report.States, func(_ string, pods int) bool { return pods == 0 })
			if diff := cmp.Diff(test.states, report.States); diff != "" || report.Total != 3 || looked != 3 || report.Partial != test.partial {
				t.Errorf("%d pods, %d looked at, partial %t, states (-want +got):\n%s", report.Total, looked, report.Partial, diff)
			}
			var names []string
			for _, pod := range report.Pods {
				names = append(names, pod.Name)
			}
			if diff := cmp.Diff([]string{"b", "c"}, names); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if len(report.Notes) != len(test.notes) || len(test.notes) > 0 && !strings.Contains(report.Notes[0], test.notes[0]) {
				t.Errorf("notes %q, want %q", report.Notes, test.notes)
			}
			if got, want := report.Drifted(), 2-test.states[drift.Unknown]; got != want {
				t.Errorf("%d are drifted, want %d", got, want)
			}
		})
	}
}

func TestSurveyOfNothing(t *testing.T) {
	api := clustertest.Open(t, clustertest.Cluster{Objects: "{kind: Deny, verb: list, resource: pods}"})
	if report, err := Read(t.Context(), cluster.Both{Workload: api, Identity: api}, "", "shop", func(int) {}); err == nil {
		t.Errorf("%+v, without a right to list pods", report)
	}
}
