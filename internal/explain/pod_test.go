package explain

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// team is a namespace with the label, whose account app has the identity store and may use it, and whose user may not create pods.
const team = `
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {identity.credence.dev/workload-identities: enabled}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: team, name: app, annotations: {identity.credence.dev/workload-identities: store}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: team, name: plain}
---
apiVersion: authentication.gardener.cloud/v1alpha1
kind: WorkloadIdentity
metadata: {namespace: team, name: store}
spec: {audiences: [sts.amazonaws.com], targetSystem: {type: aws, providerConfig: {apiVersion: aws.authentication.gardener.cloud/v1alpha1, kind: Config, iamRoleARN: "arn:aws:iam::123456789012:role/store"}}}
---
{kind: Deny, verb: create, resource: pods}`

const (
	mayUse   = "\n---\n{kind: Use, user: 'system:serviceaccount:team:app', identity: team/store}"
	agentMay = "\n---\n{kind: Use, user: 'system:serviceaccount:credence-system:credence-agent', verb: get, identity: team/}" +
		"\n---\n{kind: Use, user: 'system:serviceaccount:credence-system:credence-agent', verb: create, identity: team/}"
)

func deny(verb, resource string) string {
	return "\n---\n{kind: Deny, verb: " + verb + ", resource: " + resource + "}"
}

// secret is the token Secret of account app, whose token expires then.
func secret(expires time.Time, labels string) string {
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(fmt.Appendf(nil, `{"iss":"https://x","exp":%d}`, expires.Unix())) + "." + encode(make([]byte, 64))
	return "\n---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: team, name: " + tokensecret.NameFor("app", "store") + ", labels: {" + labels +
		"}, annotations: {workloadidentity.authentication.gardener.cloud/name: store, workloadidentity.authentication.gardener.cloud/namespace: team}}\n" +
		"data: {token: " + base64.StdEncoding.EncodeToString([]byte(token)) + "}"
}

const purpose = "authentication.gardener.cloud/purpose: workload-identity-token-requestor"

func event(kind, name, reason, message string) string {
	return "\n---\napiVersion: v1\nkind: Event\nmetadata: {namespace: team, name: e-" + strings.ToLower(kind) + "}\ntype: Warning\nreason: " + reason + "\nmessage: '" + message +
		"'\nlastTimestamp: '2026-07-01T11:59:00Z'\ninvolvedObject: {kind: " + kind + ", namespace: team, name: " + name + "}"
}

func subject(t *testing.T, text string) Subject {
	t.Helper()
	subjects, err := SubjectsOfText([]byte(text), "team")
	if err != nil || len(subjects) != 1 {
		t.Fatalf("%d subjects, %v", len(subjects), err)
	}
	return subjects[0]
}

func explained(t *testing.T, objects, pod string) *Pod {
	t.Helper()
	api := clustertest.Open(t, clustertest.Cluster{Objects: objects})
	x := testkit.Need(Identities(t.Context(), cluster.Both{Workload: api, Identity: api}, subject(t, pod), now))(t)
	return x
}

func podOf(account string) string {
	return "{kind: Pod, metadata: {name: p}, spec: {serviceAccountName: " + account + ", containers: [{name: main, image: i}]}}"
}

func TestVerdictsOnPods(t *testing.T) {
	healthy := team + mayUse + agentMay + secret(now.Add(time.Hour), purpose)
	for name, test := range map[string]struct {
		objects, pod    string
		verdict, reason string
	}{
		"admitted":                {healthy, podOf("app"), Admitted, ""},
		"without an identity":     {healthy, podOf("plain"), Unaffected, ""},
		"without the right":       {team, podOf("app"), Refused, `may not use workload identity "store"`},
		"without an account":      {team, podOf("other"), Refused, "service account team/other does not exist"},
		"without the label":       {strings.Replace(healthy, "enabled", "disabled", 1), podOf("app"), Unserved, "identity.credence.dev/workload-identities=disabled, which has no effect"},
		"an own mount":            {healthy, "{kind: Pod, metadata: {name: p}, spec: {serviceAccountName: app, containers: [{name: main, image: i, volumeMounts: [{name: x, mountPath: /var/run/secrets/workload-identity/store}]}], volumes: [{name: x, emptyDir: {}}]}}", Refused, `in the way of workload identity "store"`},
		"rights that are unknown": {team + deny("create", "subjectaccessreviews"), podOf("app"), Unknown, "you may not create subjectaccessreviews"},
		"a namespace unread":      {healthy + deny("get", "namespaces"), podOf("app"), Unknown, "you may not read namespace team"},
		"no token yet":            {team + mayUse + agentMay, podOf("app"), Admitted, ""},
		"an agent without rights": {team + mayUse, podOf("app"), Blocked, "the agent may not get tokens of the identities of namespace team"},
		"a Secret of others":      {team + mayUse + agentMay + secret(now, ""), podOf("app"), Blocked, "is not the agent's"},
		"a failure":               {team + mayUse + agentMay + event("ServiceAccount", "app", "SecretNotCreated", "create Secret "+tokensecret.NameFor("app", "store")+": exceeded quota"), podOf("app"), Blocked, "SecretNotCreated: create Secret"},
		"a failure that is gone":  {team + mayUse + agentMay + event("ServiceAccount", "app", "UseDenied", "service account team/app may not use the WorkloadIdentity team/store"), podOf("app"), Admitted, ""},
		"a Secret unread":         {team + mayUse + deny("get", "secrets"), podOf("app"), Unknown, "as you may not read Secret " + tokensecret.NameFor("app", "store")},
		"the same, no identity":   {strings.Replace(healthy, "{kind: Deny, verb: create, resource: pods}", "{kind: Nothing}", 1), podOf("plain"), Refused, "no objects are created"},
		"a refusal of others":     {strings.Replace(healthy, "{kind: Deny, verb: create, resource: pods}", "{kind: Nothing}", 1), podOf("app"), Refused, "no objects are created"},
	} {
		t.Run(name, func(t *testing.T) {
			x := explained(t, test.objects, test.pod)
			if x.Verdict != test.verdict || !strings.Contains(x.Reason, test.reason) || test.reason == "" && x.Reason != "" {
				t.Errorf("%s: %q, want %s: %q", x.Verdict, x.Reason, test.verdict, test.reason)
			}
		})
	}
}

func TestWhatAPodGets(t *testing.T) {
	x := explained(t, team+mayUse+agentMay+secret(now.Add(90*time.Minute), purpose),
		"{kind: Pod, metadata: {name: p, annotations: {identity.credence.dev/skip-containers: proxy}}, spec: {serviceAccountName: app, containers: [{name: main, image: i, env: [{name: AWS_ROLE_ARN, value: own}]}, {name: proxy, image: i}]}}")
	want := []*Identity{{
		Name: "store", Type: "aws", Use: useAllowed, Secret: tokensecret.NameFor("app", "store"), State: "has a token, which expires 2026-07-01T13:30:00Z (in 90m)",
		Containers: []Container{{
			Name: "main", Files: []string{"/var/run/secrets/workload-identity/store/token"}, Kept: []string{"AWS_ROLE_ARN"},
			Variables: []corev1.EnvVar{{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: "/var/run/secrets/workload-identity/store/token"}},
		}},
	}}
	if diff := cmp.Diff(want, x.Identities); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !x.Gated || x.Delivery != "secret" || x.DryRun || len(x.Warnings) != 1 || !slices.ContainsFunc(x.Notes, func(n string) bool { return strings.Contains(n, "you may not create pods here") }) {
		t.Errorf("gated %t, delivery %s, dry run %t, warnings %q, notes %q", x.Gated, x.Delivery, x.DryRun, x.Warnings, x.Notes)
	}
	if diff := cmp.Diff("2026-07-01T11:00:00Z (60m ago)", stateOfExpired(t)); diff != "" {
		t.Error(diff)
	}
}

func stateOfExpired(t *testing.T) string {
	t.Helper()
	x := explained(t, team+mayUse+agentMay+secret(now.Add(-time.Hour), purpose), podOf("app"))
	return strings.TrimPrefix(x.Identities[0].State, "has an expired token: ")
}

// A pod that exists was seen by the webhook, or is without what a new one would get.
func TestPodThatExists(t *testing.T) {
	healthy := team + mayUse + agentMay + secret(now.Add(time.Hour), purpose)
	x := explained(t, healthy, "{kind: Pod, metadata: {name: p, uid: u}, spec: {serviceAccountName: app, nodeName: node-1, containers: [{name: main, image: i}]}, status: {phase: Running}}")
	if x.Verdict != Admitted || !x.Identities[0].Missing || x.Drift == nil || x.Drift.State == "current" {
		t.Errorf("%s, missing %t, drift %+v", x.Verdict, x.Identities[0].Missing, x.Drift)
	}
	const waits = "{kind: Pod, metadata: {name: p, uid: u}, spec: {serviceAccountName: app, schedulingGates: [{name: identity.credence.dev/token}], containers: [{name: main, image: i}]}, " +
		"status: {phase: Pending, conditions: [{type: identity.credence.dev/TokenReady, status: 'False', reason: SecretMissing, message: 'Secret other does not exist yet'}]}}"
	x = explained(t, healthy, waits)
	if x.Verdict != Blocked || x.Reason != "Secret other does not exist yet" || !x.Gated {
		t.Errorf("%s: %s, gated %t", x.Verdict, x.Reason, x.Gated)
	}
}

// A pod that waits behind its gate is one that no agent has looked at, unless there is a report about it, or the time for one has not passed.
func TestPodThatNoAgentHasLookedAt(t *testing.T) {
	healthy := team + mayUse + agentMay + secret(now.Add(time.Hour), purpose)
	waits := func(account string, waited time.Duration, status string) string {
		return "{kind: Pod, metadata: {name: p, uid: u, creationTimestamp: '" + now.Add(-waited).Format(time.RFC3339) + "'}, spec: {serviceAccountName: " + account +
			", schedulingGates: [{name: identity.credence.dev/token}], containers: [{name: main, image: i}]}, status: {phase: Pending" + status + "}}"
	}
	for name, test := range map[string]struct{ objects, pod, verdict, reason string }{
		"for half a minute":                    {healthy, waits("app", 30*time.Second, ""), Waits, "it has waited for its tokens for 30s, and no agent has reported about it. A cluster admin sees whether an agent works with: kubectl get lease credence-agent -n credence-system"},
		"of an account that lists nothing now": {healthy, waits("plain", time.Hour, ""), Waits, "for 1h0m0s"},
		"for less":                             {healthy, waits("app", 29*time.Second, ""), Admitted, ""},
		"with a condition":                     {healthy, waits("app", time.Hour, ", conditions: [{type: identity.credence.dev/TokenReady, status: 'True'}]"), Admitted, ""},
		"with an Event":                        {healthy + event("Pod", "p", "WaitingForToken", "soon"), waits("app", time.Hour, ""), Admitted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if x := explained(t, test.objects, test.pod); x.Verdict != test.verdict || !strings.Contains(x.Reason, test.reason) || test.reason == "" && x.Reason != "" {
				t.Errorf("%s: %q, want %s: %q", x.Verdict, x.Reason, test.verdict, test.reason)
			}
		})
	}
}

// Within an hour kubelets may use tokens of an account that is gone, for pods that are older than its namesake.
func TestPodOfAnAccountThatIsGone(t *testing.T) {
	for made, want := range map[string]int{"11:30": 1, "10:59": 0, "09:00": 0} {
		again := strings.Replace(team, "name: app, ", "name: app, creationTimestamp: '2026-07-01T"+made+":00Z', ", 1)
		x := explained(t, again+mayUse+agentMay, "{kind: Pod, metadata: {name: p, uid: u, creationTimestamp: '2026-07-01T10:00:00Z'}, spec: {serviceAccountName: app, containers: [{name: main, image: i}]}, status: {phase: Running}}")
		if got := strings.Count(strings.Join(x.Warnings, "\n"), "service account app was deleted and created again at 2026-07-01T"+made); got != want {
			t.Errorf("made at %s: %q", made, x.Warnings)
		}
	}
}

// Fields and keys that nothing reads are named.
func TestMisspelledFieldsAndKeys(t *testing.T) {
	misspelt := strings.Replace(team, "namespace: team, name: plain", "namespace: team, name: plain, annotations: {identity.credence.dev/workload-identitys: store}", 1)
	x := explained(t, misspelt, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {serviceAccountNam: app, serviceAccountName: plain, containers: [{name: main, image: i}]}}}}")
	if len(x.Warnings) != 1 || !strings.HasPrefix(x.Warnings[0], `unknown field "spec.template.spec.serviceAccountNam"`) {
		t.Errorf("warnings: %q", x.Warnings)
	}
	if !slices.ContainsFunc(x.Notes, func(n string) bool {
		return strings.HasPrefix(n, "annotation identity.credence.dev/workload-identitys of serviceaccount team/plain has no effect")
	}) {
		t.Errorf("notes: %q", x.Notes)
	}
}

func TestSubjects(t *testing.T) {
	const spec = "spec: {serviceAccountName: app, containers: [{name: main, image: i}]}"
	for text, want := range map[string]string{
		"{kind: Pod, metadata: {name: a}, " + spec + "}":                                                                      "pod team/a",
		"{kind: Pod, metadata: {generateName: a-, namespace: other}, " + spec + "}":                                           "pod other/a-…",
		"{kind: Deployment, apiVersion: apps/v1, metadata: {name: a}, spec: {template: {" + spec + "}}}":                      "deployment team/a",
		"{kind: CronJob, apiVersion: batch/v1, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {" + spec + "}}}}}": "cronjob team/a",
	} {
		if got := subject(t, text); got.String() != want || got.pod.Spec.ServiceAccountName != "app" {
			t.Errorf("%s: %s of account %s", text, got, got.pod.Spec.ServiceAccountName)
		}
	}
	for text, want := range map[string]string{
		"{kind: Pod, metadata: {name: a, namespace: ../x}, spec: {}}":       "metadata.namespace",
		"{kind: Pod, metadata: {name: a}, spec: {serviceAccountName: a/b}}": "spec.serviceAccountName",
		"- a list": "not an object of Kubernetes",
	} {
		if _, err := SubjectsOfText([]byte(text), "team"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if some, err := SubjectsOfText([]byte("kind: Service\n---\nkind: List\nitems: [{kind: Pod, metadata: {name: a}}, {kind: Secret}]\n"), "team"); err != nil || len(some) != 1 || some[0].pod.Spec.ServiceAccountName != "default" {
		t.Errorf("%v, %v", some, err)
	}
}

func TestKinds(t *testing.T) {
	for word, want := range map[string]string{
		"po": "pod", "Pods": "pod", "pods.v1.": "pod", "deploy": "deployment", "Deployments.apps": "deployment", "deployments.v1.apps": "deployment",
		"sa": "serviceaccount", "ServiceAccounts": "serviceaccount", "wi": "workloadidentity", "workloadidentities.authentication.gardener.cloud": "workloadidentity",
		"service": "", "pods.apps": "", "deployments.batch": "", "deployments.v2.apps": "",
	} {
		if kind, known := KindOf(word); kind.Name != want || known != (want != "") {
			t.Errorf("%s is %q", word, kind.Name)
		}
	}
	if names := KindNames(false); !slices.IsSorted(names) || len(names) != 9 || len(KindNames(true)) != 7 {
		t.Errorf("kinds are %v", names)
	}
}
