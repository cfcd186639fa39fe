package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
	"github.com/credence-id/credence/test/testkit"

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
		"reached":             {clustertest.Cluster{Date: at(5 * time.Second)}, true, false, []string{"pass: http://127.0.0.1", "pass: 1.37 has all", "pass: agree"}},
		"without a clock":     {clustertest.Cluster{}, true, false, []string{"pass: http", "pass: 1.37", "skipped: does not tell its time"}},
		"a clock behind":      {clustertest.Cluster{Date: at(-45 * time.Second)}, true, false, []string{"pass: http", "pass: 1.37", "warn: differ by 45s"}},
		"a clock ahead":       {clustertest.Cluster{Date: at(2 * time.Minute)}, true, false, []string{"pass: http", "pass: 1.37", "fail: 2026-07-01T12:02:00Z, this machine's 2026-07-01T12:00:00Z"}},
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

func TestKubernetes(t *testing.T) {
	for minor, want := range map[string]string{
		"32":  "fail: the cluster is Kubernetes 1.32, and Credence needs 1.33 or newer",
		"33+": "pass: 1.33 has all but: ",
		"35":  "MutatingAdmissionPolicies of yours about objects of Credence: missing, ",
		"36":  "pass: 1.36 has all that Credence uses",
		"38":  "warn: 1.38 is newer than 1.37",
		"x":   `skipped: the version of the cluster is "1"."x"`,
	} {
		found := &Diagnosis{}
		checkKubernetes(found, "kubernetes", []byte(`{"major":"1","minor":"`+minor+`"}`))
		if f := found.Findings[0]; !strings.Contains(f.Verdict+": "+f.Detail, want) {
			t.Errorf("%s: %+v, want %s", minor, f, want)
		}
	}
}

func TestDriver(t *testing.T) {
	const driver = "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: csi.identity.credence.dev}\nspec: {"
	for name, test := range map[string]struct {
		objects, minor string
		want           []string
	}{
		"not installed":        {"", "37", nil},
		"with the field":       {driver + "serviceAccountTokenInSecrets: true}", "37", nil},
		"installed on 1.34":    {driver + "}", "34", nil},
		"after an upgrade":     {driver + "}", "35", []string{"warn: is without spec.serviceAccountTokenInSecrets, which Kubernetes 1.35 has"}},
		"a user without right": {deny("get", "csidrivers"), "37", []string{"skipped: you may not get csidrivers"}},
	} {
		api := clustertest.Open(t, clustertest.Cluster{Objects: test.objects, Minor: test.minor})
		found, d := &Diagnosis{}, examination()
		d.checkReach(t.Context(), found, "api", api)
		found.Findings = nil
		d.checkDriver(t.Context(), found, api)
		if t.Run(name, func(t *testing.T) { expect(t, found, test.want...) }); t.Failed() {
			return
		}
	}
}

// Without an API server nothing else is checked.
func TestExamineStopsWhereNoServerAnswers(t *testing.T) {
	down := clustertest.Open(t, clustertest.Cluster{Status: http.StatusBadGateway})
	found := examination().Examine(t.Context(), cluster.Both{Workload: open(t, ""), Identity: down}, Selection{})
	expect(t, found, "pass: http", "pass: 1.37", "skipped: does not tell its time", "fail: answers 502")
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
		"of a CRD":      {joined(service+"v1alpha1.authentication.gardener.cloud}\nstatus: {conditions: [{type: Available, status: 'True', reason: Local}]}", identitiesService), []schema.GroupVersion{tokens}, []string{"fail: served by a CustomResourceDefinition of another project", "pass: "}},
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
		"all":            {configuration + "credence}\nwebhooks: [{name: a, clientConfig: {caBundle: YQ==}, rules: [{resources: [pods]}, {resources: [secrets]}]}]", "pass: pods and Secrets are sent to it"},
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

// deployment is that of a program: how many replicas it wants, and how many are ready.
func deployment(program string, wanted, ready int) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: credence-system, name: %s}\nspec: {replicas: %d}\n"+
		"status: {readyReplicas: %d, conditions: [{type: Available, status: '%t', lastTransitionTime: '2026-07-01T11:00:00Z'}]}", program, wanted, ready, ready >= wanted)
}

// Each program is seen by its Deployment, its Lease, or both: a replica that is ready and does not work counts as one that does not run.
// A Lease is as old as the clock of its cluster has it, however wrong the clock here is.
func TestLeasesByTheClockOfTheCluster(t *testing.T) {
	for date, want := range map[time.Duration]string{-5 * time.Minute: "pass: agent-1 runs", 0: "fail: no replica holds the Lease"} {
		api := clustertest.Open(t, clustertest.Cluster{Objects: lease("credence-agent", "agent-1", 5*time.Minute), Date: now.Add(date).Format(http.TimeFormat)})
		found, d := &Diagnosis{}, examination()
		d.checkReach(t.Context(), found, "api", api)
		found.Findings = nil
		d.checkPrograms(t.Context(), found, "", api)
		expect(t, found, want)
	}
}

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		name := "credence-" + p.name
		another := "credence-webhook"
		if name == another {
			another = "credence-agent"
		}
		var other []string // where the program is not visible
		if p.unseen != "" {
			other = []string{"skipped: there is no Lease credence-system/" + name + ": whether it works is seen by " + p.unseen}
		}
		for state, test := range map[string]struct {
			objects string
			want    []string
		}{
			"works":              {lease(name, "one-1", 5*time.Second), []string{"pass: one-1 runs"}},
			"hangs":              {joined(lease(name, "one-1", 46*time.Second), deployment(name, 1, 1)), []string{"fail: no replica holds the Lease credence-system/" + name + ", last renewed 2026-07-01T11:59:14Z"}},
			"stopped":            {lease(name, `""`, time.Minute), []string{"fail: no replica holds the Lease"}},
			"rolled out":         {lease(name, `""`, 0), []string{"warn: its replicas change turns: none holds the Lease"}},
			"beside another":     {joined(lease(name, "one-1", 0), deployment("collector", 1, 1)), []string{"pass: one-1 runs"}},
			"never led":          {"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {namespace: credence-system, name: " + name + "}", other},
			"not ready":          {joined(lease(name, "one-1", 0), deployment(name, 2, 0)), []string{"fail: none of 2 replicas of Deployment credence-system/" + name + " is ready, since 2026-07-01T11:00:00Z"}},
			"scaled to 0":        {deployment(name, 0, 0), []string{"fail: none of 0 replicas of Deployment credence-system/" + name + " is ready"}},
			"one replica short":  {joined(lease(name, "one-1", 0), deployment(name, 2, 1)), []string{"warn: 1 of 2 replicas"}},
			"has replicas alone": {deployment(name, 2, 2), []string{"pass: 2 of 2 replicas are ready"}},
			"not installed":      {joined(lease(name, "one-1", time.Hour), deployment(another, 1, 1)), nil},
			"not visible":        {lease("other", "other-1", 0), other},
		} {
			t.Run(p.name+" "+state, func(t *testing.T) {
				all := &Diagnosis{}
				examination().checkPrograms(t.Context(), all, "", open(t, test.objects))
				found := &Diagnosis{}
				for _, f := range all.Findings {
					if f.Check == p.name {
						found.Findings = append(found.Findings, f)
					}
					if f.Verdict == Fail && !strings.HasPrefix(f.Hint, p.stops) {
						t.Errorf("the hint does not have what stops: %s", f.Hint)
					}
				}
				expect(t, found, test.want...)
			})
		}
	}
	found := &Diagnosis{}
	examination().checkPrograms(t.Context(), found, "identity-", open(t, deny("list", "leases")))
	expect(t, found, "skipped: you may not list leases in namespace credence-system")
}

// Each program with metrics is checked, and no other.
func TestEveryProgramIsChecked(t *testing.T) {
	document := testkit.Need(os.ReadFile("../../docs/reference/alerts.md"))(t)
	var jobs, checked []string
	for _, job := range regexp.MustCompile("(?m)^\\| `credence-([a-z]+)` \\|").FindAllStringSubmatch(string(document), -1) {
		jobs = append(jobs, job[1])
	}
	for _, p := range programs {
		checked = append(checked, p.name)
	}
	slices.Sort(jobs)
	slices.Sort(checked)
	if diff := cmp.Diff(jobs, checked); diff != "" {
		t.Errorf("(-jobs +checked):\n%s", diff)
	}
}

// Only a pod shows whether the webhook answers. A pod that is refused for another reason shows nothing.
func TestPodPassesTheWebhook(t *testing.T) {
	const stopped = `Internal error occurred: failed calling webhook "pods.identity.credence.dev": connect: connection refused`
	for name, test := range map[string]struct {
		code          int
		message, want string
	}{
		"answers":         {http.StatusCreated, "", "pass: a pod of namespace team passes it, in a dry run"},
		"stopped":         {http.StatusInternalServerError, stopped, "fail: no pod can be created in namespace team, nor in others with the label: " + stopped},
		"no right":        {http.StatusForbidden, `pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "team"`, "skipped: you may not create pods in namespace team"},
		"another refusal": {http.StatusForbidden, "exceeded quota: none", "skipped: the rules of namespace team refuse the doctor's pod"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/team/pods" || r.URL.Query().Get("dryRun") != "All" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				if test.message == "" {
					_, _ = io.Copy(w, r.Body)
					return
				}
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(test.code), Message: test.message})
			}))
			defer server.Close()
			api := testkit.Need(cluster.New(&rest.Config{Host: server.URL, QPS: -1}))(t)
			found := &Diagnosis{}
			checkAdmission(t.Context(), found, api, "team")
			expect(t, found, test.want)
		})
	}
	enabled := map[string]bool{"a": true, "home": false, "kube-system": true, "b": true}
	for want, where := range map[string]Selection{"a": {Home: "home"}, "b": {Home: "b"}, "": {Home: "a", Namespace: "home"}} {
		if got := where.labeled(enabled); got != want {
			t.Errorf("%+v: %q, want %q", where, got, want)
		}
	}
}
