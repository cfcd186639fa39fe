package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/landscapes"
)

const (
	gardenerAPI   = "/apis/core.gardener.cloud/v1beta1"
	extensionsAPI = "/apis/extensions.gardener.cloud/v1alpha1"
	clusterAPI    = "/apis/cluster.x-k8s.io/v1beta2"
)

// made creates an object of YAML in one line, and returns its uid.
func (p plane) made(t *testing.T, path, kind, metadata, rest string) string {
	t.Helper()
	api := strings.TrimPrefix(path[:strings.LastIndex(path, "/")], "/apis/")
	if at := strings.Index(api, "/namespaces/"); at > 0 {
		api = api[:at]
	}
	body := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {%s}, %s}", api, kind, metadata, rest)
	got := do(t, p.config(t), "POST", path, "application/yaml", body)
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(got.Body, &object); err != nil || got.Code != 201 {
		t.Fatalf("create %s: %d %s", body, got.Code, got.Body)
	}
	return string(object.UID)
}

// landscapesInstalled applies the options for Gardener and Cluster API as they are shipped, until the test ends.
func (p plane) landscapesInstalled(t *testing.T) {
	t.Helper()
	p.applied(t, shipped(t, "docs/howto/gardener-crds.yaml"), shipped(t, "docs/howto/gardener-extension-crds.yaml"), shipped(t, "docs/howto/cluster-api-crd.yaml"),
		shipped(t, "deploy/options/gardener.yaml"), shipped(t, "deploy/options/gardener-extensions.yaml"), shipped(t, "deploy/options/cluster-api.yaml"))
}

// The options for Gardener and Cluster API as they are shipped, with objects as GEP-26 has them and as these projects publish them. It runs
// alone, as a Seed that cannot be read keeps all agents from tokens.
func TestPlaneContextKindsOfLandscapes(t *testing.T) {
	p := alone(t)
	p.landscapesInstalled(t)
	p.documentSamples(t)
	ours := p.namespace(t)
	east, west := "east-"+ours, "west-"+ours
	tokens := rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities/token"}, Verbs: []string{"create"}}
	clusterUIDs := map[string]string{}
	for _, cluster := range []string{east, west} {
		got := do(t, p.config(t), "POST", workloadClustersPath, "application/json", fmt.Sprintf(
			`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":%q},"spec":{"users":["agent-of-%s"],"identities":{"fromContexts":true,"namespaces":[%q]}}}`, cluster, cluster, ours))
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(got.Body, &object); err != nil || got.Code != 201 {
			t.Fatalf("make WorkloadCluster: %d %s", got.Code, got.Body)
		}
		clusterUIDs[cluster] = string(object.UID)
		p.forgetCluster(t, cluster)
		p.role(t, ours, "agent-of-"+cluster, []rbacv1.PolicyRule{tokens}, "agent-of-"+cluster)
	}
	for _, name := range []string{"backup", "ingress", "infrastructure", "other"} {
		p.create(t, ours, name, "aws", "a")
	}
	ask := func(config *rest.Config, identity, spec string) response {
		return do(t, config, "POST", tokenPath(ours, identity), "application/json", tokenRequest(spec))
	}
	agent := func(cluster string) *rest.Config { return p.as(t, "agent-of-"+cluster) }
	// got are the members of gardener.cloud that are not of each token.
	got := func(answer response) (map[string]any, error) {
		if answer.Code != 201 {
			return nil, fmt.Errorf("%d %s", answer.Code, answer.Body)
		}
		_, all := claims(t, decodeTokenRequest(t, answer).Status.Token)
		members := all["gardener.cloud"].(map[string]any)
		delete(members, "workloadIdentity")
		delete(members, "garden")
		return members, nil
	}
	named := func(name, uid string) map[string]any { return map[string]any{"name": name, "uid": uid} }
	within := func(namespace, name, uid string) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "uid": uid}
	}
	wantClaims := func(what string, answer func() response, want map[string]any) {
		t.Helper()
		eventually(t, func() error {
			members, err := got(answer())
			if diff := cmp.Diff(want, members); err != nil || diff != "" {
				return fmt.Errorf("%s: %w; claims (-want +got):\n%s", what, err, diff)
			}
			return nil
		})
	}
	wantCode := func(what string, answer func() response, code int, words string) {
		t.Helper()
		eventually(t, func() error {
			if err := wantAnswer(answer(), code, words); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}
	context := func(api, kind, namespace, name, uid string) string {
		at := ""
		if namespace != "" {
			at = fmt.Sprintf(`,"namespace":%q`, namespace)
		}
		return fmt.Sprintf(`{"contextObject":{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q%s}}`, strings.TrimPrefix(api, "/apis/"), kind, name, uid, at)
	}

	// Without its Seed a cluster is the WorkloadCluster, with it the Seed.
	plain := func(cluster string) func() response {
		return func() response { return ask(agent(cluster), "other", `{}`) }
	}
	wantClaims("before there is a Seed", plain(east), map[string]any{"seed": named(east, clusterUIDs[east])})
	seed := p.made(t, gardenerAPI+"/seeds", "Seed", "name: "+east, fmt.Sprintf("spec: {backup: {workloadIdentityRef: {name: backup, namespace: %s}}, dns: {provider: {workloadIdentityRef: {name: ingress, namespace: %s}}}}", ours, ours))
	claimed := map[string]any{"seed": named(east, seed)}
	wantClaims("a token without context", plain(east), claimed)
	wantClaims("a cluster without a Seed", plain(west), map[string]any{"seed": named(west, clusterUIDs[west])})
	ofSeed := context(gardenerAPI, "Seed", "", east, seed)
	of := func(config *rest.Config, identity, spec string) func() response {
		return func() response { return ask(config, identity, spec) }
	}
	for _, identity := range []string{"backup", "ingress"} {
		wantClaims("the Seed, by "+identity, of(agent(east), identity, ofSeed), claimed)
	}
	wantCode("an identity that the Seed does not name", of(agent(east), "other", ofSeed), 403, "does not refer to")
	wantCode("the Seed of another cluster", of(agent(west), "backup", ofSeed), 403, "it is not on WorkloadCluster "+west)
	wantCode("a person", of(p.config(t), "backup", ofSeed), 403, "only users of WorkloadCluster "+east)
	patch := fmt.Sprintf(`{"spec":{"backup":{"workloadIdentityRef":null,"credentialsRef":{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","name":"infrastructure","namespace":%q}}}}`, ours)
	if answer := do(t, p.config(t), "PATCH", gardenerAPI+"/seeds/"+east, mergePatch, patch); answer.Code != 200 {
		t.Fatalf("patch: %d %s", answer.Code, answer.Body)
	}
	wantClaims("the Seed as Gardener has it", of(agent(east), "infrastructure", ofSeed), claimed)
	wantCode("what the Seed named before", of(agent(east), "backup", ofSeed), 403, "does not refer to")
	// A gardenlet may change its own Seed: it gets nothing of a namespace by that which its WorkloadCluster does not list.
	stray := p.namespace(t)
	p.create(t, stray, "theirs", "aws", "a")
	p.role(t, stray, "agent-of-"+east, []rbacv1.PolicyRule{tokens}, "agent-of-"+east)
	patch = fmt.Sprintf(`{"spec":{"dns":{"provider":{"credentialsRef":{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","name":"theirs","namespace":%q}}}}}`, stray)
	if answer := do(t, p.config(t), "PATCH", gardenerAPI+"/seeds/"+east, mergePatch, patch); answer.Code != 200 {
		t.Fatalf("patch: %d %s", answer.Code, answer.Body)
	}
	wantCode("an identity of a namespace that is not listed", func() response {
		return do(t, agent(east), "POST", tokenPath(stray, "theirs"), "application/json", tokenRequest(ofSeed))
	}, 403, "must list it for objects without a namespace")

	// Backups: an entry uses what its bucket does.
	project := p.made(t, gardenerAPI+"/projects", "Project", "name: fruit-"+ours, "spec: {namespace: "+ours+"}")
	bucket := p.made(t, gardenerAPI+"/backupbuckets", "BackupBucket", "name: bucket-"+ours, fmt.Sprintf(
		"spec: {seedName: %s, provider: {type: aws, region: r}, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: backup, namespace: %s}}", east, ours))
	entry := p.made(t, gardenerAPI+"/namespaces/"+ours+"/backupentries", "BackupEntry", "name: entry", fmt.Sprintf("spec: {bucketName: bucket-%s, seedName: %s}, status: {seedName: %s}", ours, west, east))
	wantClaims("a BackupBucket", of(agent(east), "backup", context(gardenerAPI, "BackupBucket", "", "bucket-"+ours, bucket)),
		map[string]any{"seed": named(east, seed), "backupBucket": named("bucket-"+ours, bucket)})
	ofEntry := context(gardenerAPI, "BackupEntry", ours, "entry", entry)
	backups := map[string]any{"backupEntry": within(ours, "entry", entry), "backupBucket": named("bucket-"+ours, bucket), "project": named("fruit-"+ours, project)}
	for cluster, uid := range map[string]string{east: seed, west: clusterUIDs[west]} {
		want := map[string]any{"seed": named(cluster, uid)}
		for claim, value := range backups {
			want[claim] = value
		}
		wantClaims("a BackupEntry that moves, on "+cluster, of(agent(cluster), "backup", ofEntry), want)
	}
	wantCode("an identity that the bucket does not name", of(agent(east), "other", ofEntry), 403, "does not refer to")
	wantCode("a BackupBucket on another cluster", of(agent(west), "backup", context(gardenerAPI, "BackupBucket", "", "bucket-"+ours, bucket)), 403, "it is not on WorkloadCluster "+west)
	p.must(t, "", "kubectl", "delete", "backupbuckets.core.gardener.cloud", "bucket-"+ours)
	wantCode("an entry whose bucket is gone", of(agent(east), "backup", ofEntry), 403, `no backupbuckets have the key`)

	// Objects of a seed are for those who may impersonate it.
	extension := p.made(t, extensionsAPI+"/namespaces/"+ours+"/extensions", "Extension", "name: e", "spec: {type: e, workloadIdentity: {name: other}}")
	record := p.made(t, extensionsAPI+"/namespaces/"+ours+"/dnsrecords", "DNSRecord", "name: d, annotations: {identity.credence.dev/workload-identities: ingress}", "spec: {type: aws-route53, secretRef: {name: ingress}}")
	wantClaims("an Extension", of(p.config(t), "other", context(extensionsAPI, "Extension", ours, "e", extension)), map[string]any{"extension": within(ours, "e", extension)})
	wantClaims("a DNSRecord", of(p.config(t), "ingress", context(extensionsAPI, "DNSRecord", ours, "d", record)), map[string]any{"dnsRecord": within(ours, "d", record)})
	wantCode("an agent", of(agent(east), "other", context(extensionsAPI, "Extension", ours, "e", extension)), 403, "it is not on WorkloadCluster "+east)

	// Cluster API: by annotations.
	cluster := p.made(t, clusterAPI+"/namespaces/"+ours+"/clusters", "Cluster",
		fmt.Sprintf("name: c, annotations: {identity.credence.dev/workload-identities: infrastructure, identity.credence.dev/workload-clusters: %s}", east),
		"spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: c}}")
	ofCluster := context(clusterAPI, "Cluster", ours, "c", cluster)
	wantClaims("a Cluster", of(agent(east), "infrastructure", ofCluster), map[string]any{"seed": named(east, seed), "cluster": within(ours, "c", cluster)})
	wantClaims("a Cluster, for an admin", of(p.config(t), "infrastructure", ofCluster), map[string]any{"cluster": within(ours, "c", cluster)})
	wantCode("an identity that the Cluster does not name", of(agent(east), "other", ofCluster), 403, "does not refer to")
	wantCode("a Cluster that is on another cluster", of(agent(west), "infrastructure", ofCluster), 403, "it is not on WorkloadCluster "+west)

	// A Seed that is gone, and one that can't be looked up.
	p.must(t, "", "kubectl", "delete", "seeds.core.gardener.cloud", east)
	wantClaims("without its Seed again", plain(east), map[string]any{"seed": named(east, clusterUIDs[east])})
	p.must(t, "", "kubectl", "delete", "crd", "seeds.core.gardener.cloud")
	wantCode("while Seeds cannot be read", plain(east), 503, "seeds.core.gardener.cloud cannot be read")
	p.must(t, "", "kubectl", "delete", "contextkind", "seeds.core.gardener.cloud")
	wantClaims("without the ContextKind", plain(east), map[string]any{"seed": named(east, clusterUIDs[east])})
}

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
	must(t, json.Unmarshal([]byte(strings.NewReplacer("<workloadidentity-namespace>", home, "<workloadidentity-name>", "bar", "<workloadidentity-uid>", string(bar.UID),
		"<shoot-name>", "foo", "<shoot-namespace>", home, "<shoot-uid>", shoot, "<project-name>", "local", "<project-uid>", project, "<seed-name>", "seed", "<seed-uid>", seed,
		"<garden-cluster-identity>", p.gardenID(t), "https://workload-identity.gardener-local.gardener.cloud", p.Issuer).Replace(samplePayload)), &want))
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
	expect(t, wantAnswer(request(sampleTokenRequest), 409, "the request names uid"), "the sample with the uid of another object")
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
