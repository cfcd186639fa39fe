package landscapes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/test/landscapes"
	"github.com/credence-id/credence/test/testkit"
)

// used is an object, with what it uses.
type used struct {
	yaml string
	// identities and bindings are what it refers to, with what its related objects lend.
	identities, bindings []string
	clusters, claims     []string
	// secrets are those that agents deliver for it, and amounts what it counts for in Quotas beside one object.
	secrets, amounts []string
	// unreviewed is set for kinds of which no policy of the options reviews the references.
	unreviewed bool
}

const ofGardener = "{apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, namespace: garden, name: "

const project = `{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: local}, spec: {namespace: garden-local}}`

// backupEntry has no reference of its own, and is the same in both sets: its bucket lends it the identity.
var backupEntry = used{yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: BackupEntry
metadata: {name: entry, namespace: garden-local}
spec: {bucketName: bucket, seedName: west}
status: {seedName: east}
`, identities: []string{"garden/backup"}, clusters: []string{"east", "west"}, claims: []string{"backupBucket", "backupEntry", "project"}, unreviewed: true}

// Objects of each set of kinds, as the API server stores them, use what they name; and a user without the right to that cannot make them.
func TestOptions(t *testing.T) {
	s := start(t)
	t.Run("document", func(t *testing.T) {
		s.serve(t, "document.yaml", "cluster-api-v1beta1.yaml")
		s.unknown(t, object(t, `{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: other}, spec: {backup: {credentialsRef: {kind: Secret}}}}`), "spec.backup.credentialsRef")
		s.create(t, object(t, project))
		s.use(t, []string{"v1beta2", "v1beta1"}, map[string]used{
			"Seed": {yaml: landscapes.Seed, identities: []string{"garden/backup-workloadidentity", "garden/ingress-workloadidentity"}, clusters: []string{"seed"}},
			"Shoot": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: foo, namespace: garden-local}
` + landscapes.ShootSpec + `status: {technicalID: shoot--local--foo}
`, identities: []string{"garden-local/bar", "garden-local/foo"}, claims: []string{"project", "shoot"}, amounts: []string{"loadbalancer: 1"},
				secrets: []string{"shoot--local--foo/workloadidentity-dns-some-dns-provider", "shoot--local--foo/workloadidentity-extension-some-extension"}},
			"Shoot that moves": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: moves, namespace: garden-local}
spec: {credentialsBindingName: account, seedName: west}
status: {seedName: east, technicalID: shoot--local--moves}
`, bindings: []string{"garden-local/account"}, clusters: []string{"east", "west"}, claims: []string{"project", "shoot"}, amounts: []string{"loadbalancer: 1"},
				secrets: []string{"shoot--local--moves/cloudprovider"}},
			"BackupBucket": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: BackupBucket
metadata: {name: bucket}
spec: {provider: {type: aws, region: r}, seedName: seed, workloadIdentityRef: {name: backup, namespace: garden}}
`, identities: []string{"garden/backup"}, clusters: []string{"seed"}, claims: []string{"backupBucket"}},
			"BackupEntry": backupEntry,
			"Extension": {yaml: `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: e, namespace: garden-local}
spec: {type: e, workloadIdentity: {name: foo}}
`, identities: []string{"garden-local/foo"}, claims: []string{"extension"}, unreviewed: true},
			"DNSRecord": {yaml: `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: DNSRecord
metadata: {name: d, namespace: garden-local}
spec: {type: some-dns-provider, name: api.example.com, recordType: A, values: [192.0.2.1], workloadIdentity: {name: bar}}
`, identities: []string{"garden-local/bar"}, claims: []string{"dnsRecord"}, unreviewed: true},
			"Cluster": {yaml: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c, namespace: garden-local, annotations: {identity.credence.dev/workload-identities: "infrastructure,dns", identity.credence.dev/workload-clusters: "east, west"}}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AWSCluster, name: c, namespace: garden-local}
`, identities: []string{"garden-local/dns", "garden-local/infrastructure"}, clusters: []string{"east", "west"}, claims: []string{"cluster"}},
		})
	})
	t.Run("published", func(t *testing.T) {
		// A version of which objects were stored cannot be left out.
		s.remove(t, "clusters.cluster.x-k8s.io")
		s.serve(t, "gardener.yaml", "cluster-api-v1beta2.yaml")
		s.unknown(t, object(t, `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: other, namespace: garden-local}, spec: {kubernetes: {}, provider: {type: aws}, region: r, extensions: [{type: e, workloadIdentity: {name: e}}]}}`), "spec.extensions[0].workloadIdentity")
		s.create(t, object(t, project))
		s.use(t, nil, map[string]used{
			"Seed": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: seed}
spec:
  backup: {provider: aws, region: r, credentialsRef: ` + ofGardener + `backup}}
  dns:
    provider: {type: aws-route53, credentialsRef: ` + ofGardener + `ingress}}
    internal: {type: aws-route53, domain: internal.example.com, credentialsRef: ` + ofGardener + `internal}}
    defaults:
    - {type: aws-route53, domain: a.example.com, zone: z, credentialsRef: ` + ofGardener + `default}}
    - {type: aws-route53, domain: b.example.com, credentialsRef: {apiVersion: v1, kind: Secret, name: default-b, namespace: garden}}
  ingress: {domain: ingress.example.com, controller: {kind: nginx}}
  networks: {pods: 10.0.0.0/16, services: 10.1.0.0/16}
  provider: {type: aws, region: r, zones: [a]}
  resources:
  - {name: r, resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: extension}}
  - {name: s, resourceRef: {apiVersion: v1, kind: Secret, name: secret}}
`, identities: []string{"garden/backup", "garden/default", "garden/extension", "garden/ingress", "garden/internal"}, clusters: []string{"seed"}},
			"Shoot": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: foo, namespace: garden-local, annotations: {shoot.gardener.cloud/expiration-timestamp: "2030-01-01T00:00:00Z"}}
spec:
  addons: {nginxIngress: {enabled: true}}
  cloudProfile: {kind: CloudProfile, name: aws}
  credentialsBindingName: account
  dns:
    domain: foo.example.com
    providers:
    - {type: aws-route53, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: dns}}
    - {type: aws-route53, credentialsRef: {apiVersion: v1, kind: Secret, name: other}}
    - {secretName: third, primary: true}
  extensions: [{type: shoot-dns-service, providerConfig: {apiVersion: x/v1, kind: Any, of: [it]}}]
  kubernetes: {version: 1.33.1}
  networking: {type: calico, nodes: 10.2.0.0/16}
  provider:
    type: aws
    infrastructureConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: InfrastructureConfig}
    workers:
    - {name: w, machine: {type: m5.large}, minimum: 1, maximum: 3, volume: {type: gp3, size: 20Gi}, zones: [a]}
    - {name: v, machine: {type: m5.large}, minimum: 1, maximum: 2}
  region: r
  resources:
  - {name: r, resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: resource}}
  - {name: s, resourceRef: {apiVersion: v1, kind: ConfigMap, name: c}}
  seedName: west
status: {gardener: {id: pod, name: gardenlet, version: v1.130.0}, hibernated: false, seedName: east, technicalID: shoot--local--foo, uid: u}
`, identities: []string{"garden-local/dns", "garden-local/resource"}, bindings: []string{"garden-local/account"}, clusters: []string{"east", "west"}, claims: []string{"project", "shoot"},
				secrets: []string{"shoot--local--foo/cloudprovider", "shoot--local--foo/workloadidentity-dns-aws-route53"}, amounts: []string{"loadbalancer: 2", "machines: 5", "storage: 64424509440"}},
			"BackupBucket": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: BackupBucket
metadata: {name: bucket}
spec: {provider: {type: aws, region: r}, seedName: seed, credentialsRef: ` + ofGardener + `backup}}
`, identities: []string{"garden/backup"}, clusters: []string{"seed"}, claims: []string{"backupBucket"}},
			"BackupEntry": backupEntry,
			"BackupEntry of a self-hosted Shoot": {yaml: `
apiVersion: core.gardener.cloud/v1beta1
kind: BackupEntry
metadata: {name: self-hosted, namespace: garden-local}
spec: {bucketName: bucket, shootRef: {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: foo}}
`, identities: []string{"garden/backup"}, claims: []string{"backupBucket", "backupEntry", "project"}, unreviewed: true},
			"Extension": {yaml: `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: e, namespace: garden-local, annotations: {identity.credence.dev/workload-identities: "foo, bar"}}
spec: {class: shoot, type: e, providerConfig: {a: b}}
`, identities: []string{"garden-local/bar", "garden-local/foo"}, claims: []string{"extension"}, unreviewed: true},
			"DNSRecord": {yaml: `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: DNSRecord
metadata: {name: d, namespace: garden-local, annotations: {identity.credence.dev/workload-identities: bar}}
spec: {type: aws-route53, name: api.example.com, recordType: A, values: [192.0.2.1], ttl: 120, secretRef: {name: dns, namespace: garden-local}}
`, identities: []string{"garden-local/bar"}, claims: []string{"dnsRecord"}, unreviewed: true},
			"Cluster": {yaml: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: garden-local, annotations: {workloadidentity.authentication.gardener.cloud/binding: account, identity.credence.dev/workload-clusters: east}}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: c}}
`, bindings: []string{"garden-local/account"}, clusters: []string{"east"}, claims: []string{"cluster"}},
		})
	})
}

// use makes objects, and follows what they use. The ContextKinds have other texts in place of theirs.
func (s server) use(t *testing.T, oldnew []string, all map[string]used) {
	t.Helper()
	kinds := s.options(t, oldnew...)
	stored := map[string]*unstructured.Unstructured{}
	for name, each := range all {
		made := object(t, each.yaml)
		if !each.unreviewed {
			s.refused(t, made)
		}
		stored[name] = s.create(t, made)
	}
	follower := s.follow(t, kinds)
	for name, each := range all {
		t.Run(name, func(t *testing.T) {
			testkit.Wait(t, func(ctx context.Context) error { return each.check(ctx, follower, stored[name]) })
		})
	}
}

// check returns an error unless an object is known to use what is wanted.
func (u used) check(ctx context.Context, follower *contexts.Follower, stored *unstructured.Unstructured) error {
	of := stored.GroupVersionKind()
	kind, err := follower.KindOf(of.Group, of.Kind)
	if err != nil {
		return err
	} else if kind == nil {
		return fmt.Errorf("%s is not a kind of contexts", of)
	}
	found, err := kind.Find(stored.GetNamespace(), stored.GetName())
	if err != nil {
		return err
	}
	if fault := found.Fault() + found.Nowhere(); fault != "" {
		return errors.New(fault)
	}
	claims, err := found.Claims()
	if err != nil {
		return err
	}
	var claimed, secrets, amounts []string
	for _, claim := range claims {
		claimed = append(claimed, claim.Claim)
	}
	for _, delivery := range kind.Uses(ctx, stored.Object, stored.GetNamespace()).Deliveries {
		secrets = append(secrets, delivery.Secret.String()+delivery.Fault)
	}
	counted, err := kind.Amounts(ctx, stored.Object)
	if err != nil {
		return err
	}
	for metric, amount := range counted {
		if amount.Sign() > 0 && metric != contextkind.Objects {
			amounts = append(amounts, metric+": "+amount.String())
		}
	}
	for what, pair := range map[string][2][]string{
		"identities": {u.identities, texts(found.Identities())}, "bindings": {u.bindings, texts(found.Bindings())},
		"clusters": {u.clusters, found.Clusters()}, "claims": {u.claims, claimed}, "secrets": {u.secrets, secrets}, "amounts": {u.amounts, amounts},
	} {
		if diff := cmp.Diff(slices.Sorted(slices.Values(pair[0])), slices.Sorted(slices.Values(pair[1]))); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	return nil
}

func texts(names []types.NamespacedName) []string {
	var texts []string
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return texts
}
