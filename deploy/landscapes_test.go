package deploy_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

// shippedKinds are the ContextKinds of all options, by name.
func shippedKinds(t *testing.T) map[string]*contextkind.Kind {
	t.Helper()
	files, err := deploy.Files()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]*contextkind.Kind{}
	for _, file := range files {
		for _, object := range file.Objects {
			if object.GetKind() != "ContextKind" {
				continue
			}
			var stored v1alpha1.ContextKind
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &stored, true); err != nil {
				t.Fatalf("%s: %v", object.GetName(), err)
			}
			compiled, errs := contextkind.Compile(stored.Spec)
			if len(errs) > 0 || stored.Name != contextkind.Name(stored.Spec.Object) {
				t.Fatalf("ContextKind %s: %v", stored.Name, errs)
			}
			for name, other := range kinds {
				if conflict := compiled.Conflict(other); conflict != "" {
					t.Errorf("ContextKinds %s and %s: %s", stored.Name, name, conflict)
				}
			}
			kinds[stored.Name] = compiled
		}
	}
	return kinds
}

// Objects as GEP-26 has them and as Gardener and Cluster API publish them use what they name, and no Secret of the same name.
func TestShippedContextKinds(t *testing.T) {
	kinds := shippedKinds(t)
	seen := map[string]bool{}
	for name, c := range map[string]struct {
		kind, object         string
		identities, bindings []string
		clusters             []string
		keys                 []string
	}{
		"a Seed of the document": {"seeds.core.gardener.cloud", `
metadata: {name: seed}
spec:
  backup: {workloadIdentityRef: {name: backup-workloadidentity, namespace: garden}}
  dns: {provider: {workloadIdentityRef: {name: ingress-workloadidentity, namespace: garden}}}`,
			[]string{"garden/backup-workloadidentity", "garden/ingress-workloadidentity"}, nil, []string{"seed"}, nil},
		"a Seed of Gardener": {"seeds.core.gardener.cloud", `
metadata: {name: seed}
spec:
  backup: {provider: aws, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: backup, namespace: garden}}
  dns:
    provider: {type: aws-route53, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: ingress, namespace: garden}}
    internal: {domain: internal.example.com, credentialsRef: {apiVersion: v1, kind: Secret, name: internal, namespace: garden}}
    defaults:
    - {domain: a.example.com, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: default, namespace: dns}}
    - {domain: b.example.com, credentialsRef: {apiVersion: v1, kind: Secret, name: default-b, namespace: dns}}
  resources:
  - {name: r, resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: extension}}
  - {name: s, resourceRef: {apiVersion: v1, kind: Secret, name: secret}}`,
			[]string{"dns/default", "garden/backup", "garden/extension", "garden/ingress"}, nil, []string{"seed"}, nil},
		"a Seed with Secrets alone": {"seeds.core.gardener.cloud", `
metadata: {name: seed}
spec: {backup: {secretRef: {name: backup, namespace: garden}, credentialsRef: {apiVersion: v1, kind: Secret, name: backup, namespace: garden}}}`,
			nil, nil, []string{"seed"}, nil},
		"a Seed without anything": {"seeds.core.gardener.cloud", `{metadata: {name: seed}, spec: {}}`, nil, nil, []string{"seed"}, nil},
		"a BackupBucket of the document": {"backupbuckets.core.gardener.cloud", `
metadata: {name: bucket}
spec: {seedName: east, workloadIdentityRef: {name: backup, namespace: garden}}`,
			[]string{"garden/backup"}, nil, []string{"east"}, nil},
		"a BackupBucket of Gardener": {"backupbuckets.core.gardener.cloud", `
metadata: {name: bucket}
spec: {seedName: east, provider: {type: aws, region: r}, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: backup, namespace: garden}}`,
			[]string{"garden/backup"}, nil, []string{"east"}, nil},
		"a BackupEntry, while it moves": {"backupentries.core.gardener.cloud", `
metadata: {name: entry, namespace: garden-local}
spec: {bucketName: bucket, seedName: west}
status: {seedName: east}`,
			nil, nil, []string{"east", "west"}, []string{"bucket", "garden-local"}},
		"a BackupEntry of a self-hosted Shoot": {"backupentries.core.gardener.cloud", `
metadata: {name: entry, namespace: garden-local}
spec: {bucketName: bucket, shootRef: {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: foo}}`,
			nil, nil, nil, []string{"bucket", "garden-local"}},
		"an Extension of the document": {"extensions.extensions.gardener.cloud", `
metadata: {name: e, namespace: shoot--local--foo}
spec: {type: e, workloadIdentity: {name: foo}}`,
			[]string{"shoot--local--foo/foo"}, nil, nil, nil},
		"an Extension of Gardener": {"extensions.extensions.gardener.cloud", `
metadata: {name: e, namespace: shoot--local--foo, annotations: {identity.credence.dev/workload-identities: "foo, bar"}}
spec: {type: e, providerConfig: {}}`,
			[]string{"shoot--local--foo/bar", "shoot--local--foo/foo"}, nil, nil, nil},
		"a DNSRecord of the document": {"dnsrecords.extensions.gardener.cloud", `
metadata: {name: d, namespace: shoot--local--foo}
spec: {type: some-dns-provider, workloadIdentity: {name: bar}}`,
			[]string{"shoot--local--foo/bar"}, nil, nil, nil},
		"a DNSRecord of Gardener": {"dnsrecords.extensions.gardener.cloud", `
metadata: {name: d, namespace: shoot--local--foo, annotations: {identity.credence.dev/workload-identities: bar}}
spec: {type: aws-route53, secretRef: {name: dns, namespace: shoot--local--foo}, name: api.example.com, recordType: A, values: [1.2.3.4]}`,
			[]string{"shoot--local--foo/bar"}, nil, nil, nil},
		"a Cluster": {"clusters.cluster.x-k8s.io", `
metadata: {name: c, namespace: team, annotations: {identity.credence.dev/workload-identities: "infrastructure,dns", identity.credence.dev/workload-clusters: "east, west"}}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: c}}`,
			[]string{"team/dns", "team/infrastructure"}, nil, []string{"east", "west"}, nil},
		"a Cluster with a binding": {"clusters.cluster.x-k8s.io", `
metadata: {name: c, namespace: team, annotations: {workloadidentity.authentication.gardener.cloud/binding: account}}`,
			nil, []string{"team/account"}, nil, nil},
		"a Cluster without annotations": {"clusters.cluster.x-k8s.io", `{metadata: {name: c, namespace: team}}`, nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen[c.kind] = true
			text, err := yaml.YAMLToJSON([]byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal(text, &object.Object); err != nil {
				t.Fatal(err)
			}
			uses := kinds[c.kind].Uses(t.Context(), object.Object, object.GetNamespace())
			if uses.Fault != "" || uses.ClustersFault != "" {
				t.Fatalf("faults: %s, %s", uses.Fault, uses.ClustersFault)
			}
			var identities, bindings, keys []string
			for _, one := range uses.Identities {
				identities = append(identities, one.String())
			}
			for _, one := range uses.Bindings {
				bindings = append(bindings, one.String())
			}
			for _, key := range uses.Keys {
				keys = append(keys, key.Text+key.Fault)
			}
			slices.Sort(identities)
			slices.Sort(uses.Clusters)
			for what, pair := range map[string][2][]string{
				"identities": {c.identities, identities}, "bindings": {c.bindings, bindings}, "clusters": {c.clusters, uses.Clusters}, "keys": {c.keys, keys},
			} {
				if diff := cmp.Diff(slices.Concat([]string{}, pair[0]), slices.Concat([]string{}, pair[1])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
	for name := range kinds {
		if !seen[name] && name != "shoots.core.gardener.cloud" { // TestContextKinds
			t.Errorf("ContextKind %s has no case", name)
		}
	}
}

// Gardener stores the spec of a Shoot as it comes by the subresource binding, too.
func TestRulesOfShootsCoverBinding(t *testing.T) {
	files, err := deploy.Files()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, file := range files {
		for _, object := range file.Objects {
			rules, _, err := unstructured.NestedSlice(object.Object, "spec", "matchConstraints", "resourceRules")
			if err != nil {
				t.Fatal(err)
			}
			webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			for _, webhook := range webhooks {
				of, _, err := unstructured.NestedSlice(webhook.(map[string]any), "rules")
				if err != nil {
					t.Fatal(err)
				}
				rules = append(rules, of...)
			}
			for _, rule := range rules {
				resources, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(resources, "shoots") {
					found[object.GetKind()]++
					if !slices.Contains(resources, "shoots/binding") {
						t.Errorf("%s %s: %q", object.GetKind(), object.GetName(), resources)
					}
				}
			}
		}
	}
	if found["ValidatingAdmissionPolicy"] < 2 || found["ValidatingWebhookConfiguration"] < 1 {
		t.Errorf("rules about Shoots: %v", found)
	}
}
