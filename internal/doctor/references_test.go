package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
	"github.com/credence-id/credence/test/testkit"
)

const referring = `
apiVersion: identity.credence.dev/v1alpha1
kind: ContextKind
metadata: {name: shoots.core.gardener.cloud}
spec: {object: {group: core.gardener.cloud, version: v1beta1, resource: shoots, kind: Shoot}}
---
{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: unbound, namespace: team}}
---
{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: lost, namespace: team}}
---
{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: fine, namespace: team}}
---
{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: hidden, namespace: team}}
`

// Objects whose binding or identity is missing are listed, as the API server reviews them.
func TestReferencesOfObjects(t *testing.T) {
	to := &v1alpha1.NamespacedReference{Namespace: "team", Name: "cloud"}
	reviews := map[string]v1alpha1.ReviewedReference{
		"unbound": {CredentialsBinding: to, Problem: "the CredentialsBinding does not exist"},
		"lost":    {WorkloadIdentity: to, Tokens: []v1alpha1.ReviewedToken{{Code: http.StatusNotFound}}},
		"fine":    {WorkloadIdentity: to, Tokens: []v1alpha1.ReviewedToken{{Cluster: "east"}, {Code: http.StatusForbidden}}},
	}
	handler := testkit.Need(clustertest.Handler(clustertest.Cluster{Objects: referring}))(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/contextreviews") {
			handler.ServeHTTP(w, r)
			return
		}
		var review v1alpha1.ContextReview
		testkit.Expect(t, json.NewDecoder(r.Body).Decode(&review))
		reference, known := reviews[review.Spec.ContextObject.Name]
		if !known {
			w.WriteHeader(http.StatusForbidden)
		}
		review.Status.References = []v1alpha1.ReviewedReference{reference}
		testkit.Expect(t, json.NewEncoder(w).Encode(review))
	}))
	t.Cleanup(server.Close)
	api := testkit.Need(cluster.New(&rest.Config{Host: server.URL, QPS: -1}))(t)
	found := &Diagnosis{}
	checkReferences(t.Context(), found, cluster.Both{Workload: api, Identity: api}, "")
	expect(t, found, "warn: 2 objects name a binding or identity that does not exist: Shoot team/unbound: CredentialsBinding team/cloud does not exist, Shoot team/lost: WorkloadIdentity team/cloud does not exist")
	found = &Diagnosis{}
	checkReferences(t.Context(), found, cluster.Both{Workload: api, Identity: api}, "team")
	expect(t, found)
}
