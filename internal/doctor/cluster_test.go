package doctor

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
)

func TestReach(t *testing.T) {
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		answers clustertest.Cluster
		reached bool
		outage  bool
		want    []string
	}{
		"reached":             {clustertest.Cluster{Date: at(5 * time.Second)}, true, false, []string{"pass: http://127.0.0.1", "pass: agree"}},
		"without a clock":     {clustertest.Cluster{}, true, false, []string{"pass: http", "skipped: does not tell its time"}},
		"a clock behind":      {clustertest.Cluster{Date: at(-45 * time.Second)}, true, false, []string{"pass: http", "warn: differ by 45s"}},
		"a clock ahead":       {clustertest.Cluster{Date: at(2 * time.Minute)}, true, false, []string{"pass: http", "fail: 2026-07-01T12:02:00Z, this machine's 2026-07-01T12:00:00Z"}},
		"other credentials":   {clustertest.Cluster{Status: http.StatusUnauthorized}, false, false, []string{"fail: does not accept the credentials of the kubeconfig"}},
		"an API server fails": {clustertest.Cluster{Status: http.StatusServiceUnavailable}, false, true, []string{"fail: answers 503"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			if reached := examination().checkReach(t.Context(), found, "api", clustertest.Open(t, test.answers)); reached != test.reached || found.Unreachable != test.outage {
				t.Errorf("reached %v, outage %v", reached, found.Unreachable)
			}
			expect(t, found, test.want...)
		})
	}
}

// Without an API server nothing else is checked.
func TestExamineStopsWhereNoServerAnswers(t *testing.T) {
	down := clustertest.Open(t, clustertest.Cluster{Status: http.StatusBadGateway})
	found := examination().Examine(t.Context(), cluster.Both{Workload: open(t, ""), Identity: down}, Selection{})
	expect(t, found, "pass: http", "skipped: does not tell its time", "fail: answers 502")
}

const service = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: `

const (
	tokensService     = service + "v1alpha1.authentication.gardener.cloud}\nstatus: {conditions: [{type: Available, status: 'True'}]}"
	identitiesService = service + "v1alpha1.identity.credence.dev}\nstatus: {conditions: [{type: Available, status: 'True'}]}"
)

func TestAPIServices(t *testing.T) {
	tokens, identities := v1alpha1.SchemeGroupVersion, identityv1alpha1.SchemeGroupVersion
	for name, test := range map[string]struct {
		objects string
		missing []schema.GroupVersion
		want    []string
	}{
		"both":          {joined(tokensService, identitiesService), nil, []string{"pass: v1alpha1.authentication.gardener.cloud is available", "pass: v1alpha1.identity.credence.dev is available"}},
		"one":           {tokensService, []schema.GroupVersion{identities}, []string{"pass: is available", "fail: v1alpha1.identity.credence.dev"}},
		"not forwarded": {joined(service+"v1alpha1.authentication.gardener.cloud}\nstatus: {conditions: [{type: Available, status: 'False', message: no endpoints}]}", identitiesService), []schema.GroupVersion{tokens}, []string{"fail: no endpoints", "pass: "}},
		"not looked at": {joined(service+"v1alpha1.authentication.gardener.cloud}", identitiesService), []schema.GroupVersion{tokens}, []string{"fail: it is not known to be available", "pass: "}},
		"no right":      {deny("get", "apiservices"), nil, []string{"skipped: you may not get apiservices"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			if diff := cmp.Diff(test.missing, checkAPIServices(t.Context(), found, open(t, test.objects))); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			expect(t, found, test.want...)
		})
	}
}

func TestWebhooks(t *testing.T) {
	const configuration = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: "
	for name, test := range map[string]struct{ objects, want string }{
		"all":            {configuration + "credence}\nwebhooks: [{name: a, clientConfig: {caBundle: YQ==}, rules: [{resources: [pods]}, {resources: [secrets]}]}]", "pass: pods and Secrets pass it"},
		"by their names": {configuration + "other}\nwebhooks: [{name: pods.identity.credence.dev, clientConfig: {caBundle: YQ==}, rules: [{resources: [pods, secrets]}]}]", "pass: "},
		"no authority":   {configuration + "credence}\nwebhooks: [{name: a, rules: [{resources: [pods, secrets]}]}]", "warn: a: without a caBundle"},
		"of others":      {configuration + "other}\nwebhooks: [{name: pods.example.com, rules: [{resources: [pods, secrets]}]}]", "fail: no MutatingWebhookConfiguration of Credence is for pods"},
		"pods alone":     {configuration + "credence}\nwebhooks: [{name: a, rules: [{resources: [pods]}]}]", "fail: is for secrets"},
		"no right":       {deny("list", "mutatingwebhookconfigurations"), "skipped: you may not list mutatingwebhookconfigurations"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			checkWebhooks(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want)
		})
	}
}

// lease is that of a program whose replica renewed it this long ago.
func lease(program, holder string, ago time.Duration) string {
	return "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {namespace: credence-system, name: " + program +
		"}\nspec: {leaseDurationSeconds: 15, holderIdentity: " + holder + ", renewTime: '" + now.Add(-ago).Format("2006-01-02T15:04:05.000000Z07:00") + "'}"
}

func TestAgentRuns(t *testing.T) {
	for name, test := range map[string]struct{ objects, want string }{
		"renewed lately":    {lease("credence-agent", "agent-1", 5*time.Second), "pass: agent-1 runs"},
		"renewed long ago":  {lease("credence-agent", "agent-1", 3*time.Minute), "fail: no agent holds the Lease credence-system/credence-agent"},
		"of another's":      {lease("credence-registry", "registry-1", 0), "skipped: there is no Lease"},
		"without a replica": {lease("credence-agent", `""`, 0), "fail: no agent holds"},
		"no right":          {deny("get", "leases"), "skipped: you may not get leases in namespace credence-system"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			examination().checkAgent(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want)
		})
	}
}
