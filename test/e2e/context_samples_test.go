package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/test/landscapes"
)

// The samples of GEP-26 on tokens, as the document has them.
const (
	sampleTokenRequest = `apiVersion: authentication.gardener.cloud/v1alpha1
kind: TokenRequest
spec:
  contextObject: # Optional field, various metadata about context of use of the token
    apiVersion: core.gardener.cloud/v1beta1
    kind: Shoot
    name: foo
    namespace: garden-local
    uid: 54d09554-6a68-4f46-a23a-e3592385d820
  duration: 48h # Optional field, gardener will have default value of token duration if the field is unset.
status:
  token: eyJhbGciOiJ....OkBBrVWA # The generated OIDC token
  expirationTimestamp: 2024-02-09T16:35:02Z
`
	// samplePayload lacks the commas after last members, with which the document's is not JSON.
	samplePayload = `{
    "aud": [
        "service-foo-provider-bar"
    ],
    "exp": 1707315742,
    "iat": 1707312142,
    "nbf": 1707312142,
    "iss": "https://workload-identity.gardener-local.gardener.cloud",
    "sub": "gardener.cloud:workloadidentity:<workloadidentity-namespace>:<workloadidentity-name>:<workloadidentity-uid>",
    "gardener.cloud": {
        "workloadIdentity": {
            "name": "<workloadidentity-name>",
            "namespace": "<workloadidentity-namespace>",
            "uid": "<workloadidentity-uid>"
        },
        "shoot": {
            "name": "<shoot-name>",
            "namespace": "<shoot-namespace>",
            "uid": "<shoot-uid>"
        },
        "project": {
            "name": "<project-name>",
            "uid": "<project-uid>"
        },
        "seed": {
            "name": "<seed-name>",
            "uid": "<seed-uid>"
        },
        "garden": {
            "id": "<garden-cluster-identity>"
        }
    }
}`
)

// documentSamples applies the samples, and compares the payload of a token with the sample, member for member.
func (p plane) documentSamples(t *testing.T) {
	t.Helper()
	const home, garden = "garden-local", "garden"
	for _, namespace := range []string{home, garden} {
		p.must(t, "", "kubectl", "create", "namespace", namespace)
		t.Cleanup(func() {
			p.must(t, "", "kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--timeout=5m")
		})
	}
	uid := func(manifest string) string {
		t.Helper()
		return p.must(t, manifest, "kubectl", "create", "-f", "-", "-o", "jsonpath={.metadata.uid}")
	}
	agent := "agent-of-seed"
	p.must(t, fmt.Sprintf(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"seed"},"spec":{"users":[%q],"identities":{"fromContexts":true,"namespaces":[%q]}}}`, agent, garden), "kubectl", "create", "-f", "-")
	p.forgetCluster(t, "seed")
	for _, namespace := range []string{home, garden} {
		p.role(t, namespace, agent, []rbacv1.PolicyRule{{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}}, agent)
	}
	for _, name := range []string{"backup-workloadidentity", "ingress-workloadidentity"} {
		p.create(t, garden, name, "aws", "a")
	}
	p.create(t, home, "foo", "aws", "a")
	bar := p.create(t, home, "bar", "generic", "service-foo-provider-bar")
	seed := uid(landscapes.Seed)
	project := uid("{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: local}, spec: {namespace: garden-local}}")
	shoot := uid("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: foo, namespace: garden-local}\n" + landscapes.ShootSpec)
	p.must(t, "", "kubectl", "patch", "shoots.core.gardener.cloud", "foo", "-n", home, "--type=merge", "-p", `{"spec":{"seedName":"seed"}}`)

	ofShoot := fmt.Sprintf(`{"contextObject":{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","name":"foo","namespace":"garden-local","uid":%q}}`, shoot)
	ofSeed := fmt.Sprintf(`{"contextObject":{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","name":"seed","uid":%q}}`, seed)
	for _, wanted := range []struct{ namespace, identity, spec string }{
		{garden, "backup-workloadidentity", ofSeed}, {garden, "ingress-workloadidentity", ofSeed}, {home, "foo", ofShoot}, {home, "bar", ofShoot},
	} {
		eventually(t, func() error {
			return wantAnswer(do(t, p.as(t, agent), "POST", tokenPath(wanted.namespace, wanted.identity), "application/json", tokenRequest(wanted.spec)), 201, "token")
		})
	}

	_, got := claims(t, token(t, p.as(t, agent), home, "bar", ofShoot).Status.Token)
	var want map[string]any
	if err := json.Unmarshal([]byte(strings.NewReplacer("<workloadidentity-namespace>", home, "<workloadidentity-name>", "bar", "<workloadidentity-uid>", string(bar.UID),
		"<shoot-name>", "foo", "<shoot-namespace>", home, "<shoot-uid>", shoot, "<project-name>", "local", "<project-uid>", project, "<seed-name>", "seed", "<seed-uid>", seed,
		"<garden-cluster-identity>", p.gardenID(t), "https://workload-identity.gardener-local.gardener.cloud", p.Issuer).Replace(samplePayload)), &want); err != nil {
		t.Fatal(err)
	}
	later := got["iat"].(float64) - want["iat"].(float64)
	for _, at := range []string{"exp", "iat", "nbf"} {
		want[at] = want[at].(float64) + later
	}
	if got["jti"] == "" {
		t.Error("no jti")
	}
	delete(got, "jti")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payload (-the document's sample +got):\n%s", diff)
	}

	// Another object has the uid of the sample; a status is not a client's.
	request := func(body string) response {
		return do(t, p.as(t, agent), "POST", tokenPath(home, "bar"), "application/yaml", body)
	}
	if err := wantAnswer(request(sampleTokenRequest), 409, "the request names uid"); err != nil {
		t.Errorf("the sample with the uid of another object: %v", err)
	}
	answer := request(strings.ReplaceAll(sampleTokenRequest, "54d09554-6a68-4f46-a23a-e3592385d820", shoot))
	if answer.Code != 201 {
		t.Fatalf("the sample: %d %s", answer.Code, answer.Body)
	}
	issued := decodeTokenRequest(t, answer)
	_, got = claims(t, issued.Status.Token)
	exp := metav1.Unix(int64(got["exp"].(float64)), 0)
	if exp.Unix()-int64(got["iat"].(float64)) != 48*60*60 || !issued.Status.ExpirationTimestamp.Equal(&exp) {
		t.Errorf("the token is valid from %v to %v, and the answer has %v", got["iat"], got["exp"], issued.Status.ExpirationTimestamp)
	}
	p.must(t, "", "kubectl", "delete", "seeds.core.gardener.cloud", "seed")
	p.must(t, "", "kubectl", "delete", "projects.core.gardener.cloud", "local")
	p.must(t, "", "kubectl", "delete", "namespace", home, garden, "--wait=false")
}
