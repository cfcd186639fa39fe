package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/test/testkit"
)

// shippedSpecs are the ContextKinds of all options, by name.
func shippedSpecs(t *testing.T) map[string]v1alpha1.ContextKindSpec {
	t.Helper()
	files := testkit.Need(deploy.Files())(t)
	specs := map[string]v1alpha1.ContextKindSpec{}
	for _, file := range files {
		for _, object := range file.Objects {
			if object.GetKind() != "ContextKind" {
				continue
			}
			var stored v1alpha1.ContextKind
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &stored, true); err != nil {
				t.Fatalf("%s: %v", object.GetName(), err)
			}
			specs[stored.Name] = stored.Spec
		}
	}
	return specs
}

// shippedKinds are the same, compiled.
func shippedKinds(t *testing.T) map[string]*contextkind.Kind {
	t.Helper()
	kinds := map[string]*contextkind.Kind{}
	for name, spec := range shippedSpecs(t) {
		compiled, errs := contextkind.Compile(spec)
		if len(errs) > 0 || name != contextkind.Name(spec.Object) {
			t.Fatalf("ContextKind %s: %v", name, errs)
		}
		for other, kind := range kinds {
			if conflict := compiled.Conflict(kind); conflict != "" {
				t.Errorf("ContextKinds %s and %s: %s", name, other, conflict)
			}
		}
		kinds[name] = compiled
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
			text := testkit.Need(yaml.YAMLToJSON([]byte(c.object)))(t)
			object := &unstructured.Unstructured{}
			testkit.Must(t, json.Unmarshal(text, &object.Object))
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
		if !seen[name] && name != "shoots.core.gardener.cloud" { // TestPlaneContextKinds
			t.Errorf("ContextKind %s has no case", name)
		}
	}
}

// Secrets are delivered for what GEP-26 names, which are Shoots and their parts, and for nothing else that is shipped.
func TestShippedDeliveries(t *testing.T) {
	want := map[string][]string{
		"shoots.core.gardener.cloud": {"infrastructure", "dns", "extensions", "dns-credentials"},
		"seeds.core.gardener.cloud":  nil, "backupbuckets.core.gardener.cloud": nil, "backupentries.core.gardener.cloud": nil,
		"extensions.extensions.gardener.cloud": nil, "dnsrecords.extensions.gardener.cloud": nil, "clusters.cluster.x-k8s.io": nil,
	}
	got := map[string][]string{}
	for name, spec := range shippedSpecs(t) {
		got[name] = nil
		for _, reference := range spec.References {
			if reference.Deliver != nil {
				got[name] = append(got[name], reference.Name)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references with deliveries (-want +got):\n%s", diff)
	}
}

// An admin may add what docs/howto/gardener.md has for BackupBuckets.
func TestDeliveriesOfBackupBuckets(t *testing.T) {
	document := testkit.Need(os.ReadFile("../docs/howto/gardener.md"))(t)
	written := regexp.MustCompile(`(?m)^ +(deliver: .*backup.*)$`).FindStringSubmatch(string(document))
	var added v1alpha1.ContextReference
	if written == nil || yaml.UnmarshalStrict([]byte(written[1]), &added) != nil {
		t.Fatalf("the document has %q", written)
	}
	spec := shippedSpecs(t)["backupbuckets.core.gardener.cloud"]
	for i := range spec.References {
		spec.References[i].Deliver = added.Deliver
	}
	kind, errs := contextkind.Compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	bucket := map[string]any{"metadata": map[string]any{"name": "bucket"}, "spec": map[string]any{
		"seedName": "east", "credentialsRef": map[string]any{"kind": "WorkloadIdentity", "namespace": "garden", "name": "backup"},
	}}
	want := []contextkind.Delivery{{
		Secret:    types.NamespacedName{Namespace: "garden", Name: "workloadidentity-backup-bucket"},
		Reference: "credentials", To: types.NamespacedName{Namespace: "garden", Name: "backup"},
	}}
	if diff := cmp.Diff(want, kind.Uses(t.Context(), bucket, "").Deliveries); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// Gardener stores the spec of a Shoot as it comes by the subresource binding, too.
func TestRulesOfShootsCoverBinding(t *testing.T) {
	files := testkit.Need(deploy.Files())(t)
	found := map[string]int{}
	for _, file := range files {
		for _, object := range file.Objects {
			rules, _, err := unstructured.NestedSlice(object.Object, "spec", "matchConstraints", "resourceRules")
			testkit.Must(t, err)
			webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
			testkit.Must(t, err)
			for _, webhook := range webhooks {
				of, _, err := unstructured.NestedSlice(webhook.(map[string]any), "rules")
				testkit.Must(t, err)
				rules = append(rules, of...)
			}
			for _, rule := range rules {
				resources, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
				testkit.Must(t, err)
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
