package explain

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster/clustertest"
	"github.com/credence-id/credence/test/testkit"
)

// A refusal counts more than what is not known.
func TestVerdictOnAContextObject(t *testing.T) {
	identity := &v1alpha1.NamespacedReference{Namespace: "team", Name: "store"}
	good := v1alpha1.ReviewedReference{WorkloadIdentity: identity, Tokens: []v1alpha1.ReviewedToken{{Cluster: "east"}}}
	tokens := func(t ...v1alpha1.ReviewedToken) v1alpha1.ReviewedReference {
		return v1alpha1.ReviewedReference{WorkloadIdentity: identity, Tokens: t}
	}
	for name, test := range map[string]struct {
		status          v1alpha1.ContextReviewStatus
		verdict, reason string
	}{
		"all is well":       {v1alpha1.ContextReviewStatus{References: []v1alpha1.ReviewedReference{good}}, Admitted, ""},
		"nothing":           {v1alpha1.ContextReviewStatus{ContextKind: "shoots"}, Unaffected, "by ContextKind shoots"},
		"a problem":         {v1alpha1.ContextReviewStatus{Problem: "no", Unknown: []string{"a"}, References: []v1alpha1.ReviewedReference{good}}, Refused, "no"},
		"a reference":       {v1alpha1.ContextReviewStatus{References: []v1alpha1.ReviewedReference{good, {WorkloadIdentity: identity, Problem: "is gone"}}}, Refused, "identity team/store: is gone"},
		"a refused token":   {v1alpha1.ContextReviewStatus{Clusters: []string{"east"}, References: []v1alpha1.ReviewedReference{tokens(v1alpha1.ReviewedToken{Cluster: "east", Refused: "not its"})}}, Refused, "not its"},
		"the user's own":    {v1alpha1.ContextReviewStatus{Clusters: []string{"east"}, References: []v1alpha1.ReviewedReference{tokens(v1alpha1.ReviewedToken{Refused: "you may not"})}}, Admitted, ""},
		"without a cluster": {v1alpha1.ContextReviewStatus{References: []v1alpha1.ReviewedReference{tokens(v1alpha1.ReviewedToken{Refused: "you may not"})}}, Refused, "you may not"},
		"open questions":    {v1alpha1.ContextReviewStatus{Unknown: []string{"b"}, References: []v1alpha1.ReviewedReference{{Unknown: "a"}, tokens(v1alpha1.ReviewedToken{Unknown: "b"})}}, Unknown, "a; b"},
		"a delivery":        {v1alpha1.ContextReviewStatus{References: []v1alpha1.ReviewedReference{good}, Deliveries: []v1alpha1.ReviewedDelivery{{Problem: "conflict"}}}, Refused, "conflict"},
	} {
		x := &Context{ContextReviewStatus: test.status}
		if x.judge(); x.Verdict != test.verdict || !strings.Contains(x.Reason, test.reason) || test.reason == "" && x.Reason != "" {
			t.Errorf("%s: %s, %q, want %s, %q", name, x.Verdict, x.Reason, test.verdict, test.reason)
		}
	}
}

func TestTitleOfReference(t *testing.T) {
	a, b := &v1alpha1.NamespacedReference{Namespace: "n", Name: "a"}, &v1alpha1.NamespacedReference{Namespace: "n", Name: "b"}
	for want, of := range map[string][2]*v1alpha1.NamespacedReference{
		"what it refers to": {}, "CredentialsBinding n/b": {nil, b}, "identity n/a": {a, nil}, "identity n/a by CredentialsBinding n/b": {a, b},
	} {
		if got := TitleOfReference(of[0], of[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

const quotas = `
apiVersion: authentication.gardener.cloud/v1alpha1
kind: CredentialsBinding
metadata: {namespace: team, name: cloud}
quotas: [{namespace: team, name: trial}, {namespace: team, name: gone}]
---
apiVersion: authentication.gardener.cloud/v1alpha1
kind: Quota
metadata: {namespace: team, name: trial}
---
apiVersion: v1
kind: Event
metadata: {namespace: team, name: ours}
type: Warning
reason: SecretNotOwned
message: not its own
reportingComponent: credence-agent
lastTimestamp: "2026-07-01T11:00:00Z"
involvedObject: {uid: u}
---
apiVersion: v1
kind: Event
metadata: {namespace: team, name: another}
type: Warning
reason: Other
reportingComponent: other
lastTimestamp: "2026-07-01T11:59:00Z"
involvedObject: {uid: u}`

// Quotas and Events that can't be read are noted: the verdict is about tokens.
func TestQuotasAndWarningsOfAContextObject(t *testing.T) {
	object := metav1.ObjectMeta{Namespace: "team", Name: "shoot", UID: "u"}
	binding := v1alpha1.ReviewedReference{CredentialsBinding: &v1alpha1.NamespacedReference{Namespace: "team", Name: "cloud"}}
	missing := v1alpha1.ReviewedReference{CredentialsBinding: &v1alpha1.NamespacedReference{Namespace: "team", Name: "none"}}
	for name, test := range map[string]struct {
		objects string
		quotas  int
		failure string
		notes   []string
	}{
		"read":       {quotas, 1, "SecretNotOwned", []string{"Quota team/gone, which CredentialsBinding team/cloud lists, does not exist"}},
		"no binding": {quotas + deny("get", "credentialsbindings"), 0, "SecretNotOwned", []string{"lists is not known", "lists is not known"}},
		"no quotas":  {quotas + deny("get", "quotas"), 0, "SecretNotOwned", []string{"can't be shown", "can't be shown"}},
		"no Events":  {quotas + deny("list", "events"), 1, "", []string{"does not exist", "what agents have reported is not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := clustertest.Open(t, clustertest.Cluster{Objects: test.objects})
			x := &Context{ContextReviewStatus: v1alpha1.ContextReviewStatus{References: []v1alpha1.ReviewedReference{binding, missing}}}
			testkit.Must(t, x.findQuotas(t.Context(), api))
			testkit.Must(t, x.findWarning(t.Context(), api, object))
			failure := ""
			if x.LastFailure != nil {
				failure = x.LastFailure.Reason
			}
			if len(x.Quotas) != test.quotas || failure != test.failure || len(x.Notes) != len(test.notes) {
				t.Fatalf("%d quotas, failure %q, notes %q", len(x.Quotas), failure, x.Notes)
			}
			for i, note := range test.notes {
				if !strings.Contains(x.Notes[i], note) {
					t.Errorf("note %q, want %q", x.Notes[i], note)
				}
			}
		})
	}
}

// The rights and contents of credential specs that can't be read are taken for granted, with a note.
func TestFactsOfCredentialSpecs(t *testing.T) {
	const spec = "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: web}\ncredspec: {CmsPlugins: [ActiveDirectory]}"
	const use = "\n---\n{kind: Use, user: 'system:serviceaccount:team:app', resource: gmsacredentialspecs, identity: team/web}"
	named := "{kind: Pod, metadata: {name: p}, spec: {serviceAccountName: app, securityContext: {windowsOptions: {gmsaCredentialSpecName: web}}, containers: [{name: main, image: i}]}}"
	for name, test := range map[string]struct {
		objects, verdict, use string
		missing               bool
		note                  string
	}{
		"no such object":  {"{kind: Nothing}", Refused, "", true, ""},
		"no right to see": {"{kind: Nothing}" + deny("get", "gmsacredentialspecs") + deny("create", "subjectaccessreviews"), Admitted, "unknown", false, "you may not read GMSACredentialSpec web"},
		"not allowed":     {spec, Refused, "denied", false, ""},
		"allowed":         {spec + use, Admitted, "allowed", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := subject(t, named)
			if !pod.NamesSpecs() {
				t.Error("the pod names a spec")
			}
			x := testkit.Need(WindowsAccounts(t.Context(), NewFacts(clustertest.Open(t, clustertest.Cluster{Objects: test.objects})), pod))(t)
			got := x.CredentialSpecs[0]
			if x.Verdict != test.verdict || test.use != "" && got.Use != test.use || got.Missing != test.missing || !strings.Contains(strings.Join(x.Notes, "\n"), test.note) {
				t.Errorf("%s (%s), %+v, notes %q", x.Verdict, x.Reason, got, x.Notes)
			}
		})
	}
	facts := NewFacts(nil)
	facts.AddSpecs([]byte(`{"kind":"List","items":[{"apiVersion":"windows.k8s.io/v1","kind":"GMSACredentialSpec","metadata":{"name":"web"},"credspec":{"a":"b"}},{"kind":"Pod"}]}`), "a file", 0)
	if found, known := facts.spec(t.Context(), "web"); !known || !found.Exists || facts.sources["web"] != "a file" {
		t.Errorf("%+v, known %t", found, known)
	}
	if _, known := facts.spec(t.Context(), "other"); known {
		t.Error("a spec is known, and no cluster was queried")
	}
}
