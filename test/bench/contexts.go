package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	identity "github.com/credence-id/credence/api/identity/v1alpha1"
)

const (
	// contextObjects are objects of one ContextKind, of contextClusters workload clusters, each with an identity of its own.
	contextObjects, contextClusters = 10000, 50
	// contextChanges are the references that change at once. The objects of a cluster follow each other.
	contextChanges = 1000
	// The limits of a start, and of following changes.
	contextFillSeconds, contextMB, contextFollowSeconds = 20, 400, 60

	tenantGroup      = "bench.credence.example"
	tenantsPath      = "/apis/" + tenantGroup + "/v1/namespaces/%s/tenants"
	definitionsPath  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	clusterRolesPath = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	landscapePath    = "/apis/identity.credence.dev/v1alpha1/"
	changedIdentity  = "bench-changed"
)

var (
	tenantDefinition = map[string]any{"metadata": map[string]any{"name": "tenants." + tenantGroup}, "spec": map[string]any{
		"group": tenantGroup, "scope": "Namespaced", "names": map[string]any{"plural": "tenants", "kind": "Tenant"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}}
	tenantRole = map[string]any{
		"metadata": map[string]any{"name": "credence:contexts:bench", "labels": map[string]string{"identity.credence.dev/aggregate-to-contexts": "true"}},
		"rules":    []any{map[string]any{"apiGroups": []string{tenantGroup}, "resources": []string{"tenants"}, "verbs": []string{"list", "watch"}}},
	}
	tenantKind = object("identity.credence.dev/v1alpha1", "ContextKind", "tenants."+tenantGroup, map[string]any{
		"object": map[string]string{"group": tenantGroup, "version": "v1", "resource": "tenants", "kind": "Tenant"}, "claim": "tenant", "clusters": "[object.spec.cluster]",
		"references": []any{map[string]any{"name": "identity", "workloadIdentities": "[object.spec.identity]", "deliver": map[string]string{"namespace": "'bench'", "secretName": "object.metadata.name"}}},
	})
)

func tenantName(i int) string { return fmt.Sprintf("bench-%05d", i) }

func tenantCluster(i int) string { return fmt.Sprintf("bench-%d", i/(contextObjects/contextClusters)) }

// tenants are the objects, which are in the plane, and an API server of its own that follows them, with their identities.
type tenants struct {
	*world
	of *stored
	// uid is that of the first.
	uid string
}

// measureContexts measures an API server that follows many context objects: its start, tokens with one of them as their context, and changes.
func measureContexts(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, nil)
	if err != nil {
		return err
	}
	defer remove()
	for path, object := range map[string]map[string]any{definitionsPath: tenantDefinition, clusterRolesPath: tenantRole} {
		name, err := w.create(ctx, path, object)
		if err != nil {
			return err
		}
		defer func() { _ = w.remove(context.WithoutCancel(ctx), path+"/"+name) }()
	}
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	of, err := copyStored(ctx, p, w.client, "contexts", dir, w.namespace, map[string]string{"--etcd-data-dir": filepath.Join(dir, "etcd")})
	if err != nil {
		return err
	}
	defer func() { of.stop() }()
	all := &tenants{world: w, of: of}
	if err := all.prepare(ctx); err != nil {
		return err
	}
	if err := all.start(ctx, t); err != nil {
		return err
	}
	if err := all.request(ctx, s, p, t); err != nil {
		return err
	}
	return all.change(ctx, t)
}

func (a *tenants) path() string { return fmt.Sprintf(tenantsPath, a.namespace) }

func (a *tenants) prepare(ctx context.Context) error {
	copied := &client{http: a.http, cluster: a.of.aggregated}
	for i := range contextClusters {
		name := tenantCluster(i * contextObjects / contextClusters)
		spec := map[string]any{"users": []string{tenantAgent(name)}, "identities": map[string]any{"fromContexts": true}}
		if _, err := copied.create(ctx, landscapePath+"workloadclusters", object("identity.credence.dev/v1alpha1", "WorkloadCluster", name, spec)); err != nil {
			return err
		}
	}
	generic := func(name string) map[string]any {
		return object("authentication.gardener.cloud/v1alpha1", "WorkloadIdentity", name, map[string]any{"audiences": []string{"bench"}, "targetSystem": map[string]any{"type": "generic"}})
	}
	identities := fmt.Sprintf(identityPath, a.namespace)
	if _, err := copied.create(ctx, identities, generic(changedIdentity)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: %d identities and %d objects that refer to them are made\n", contextObjects, contextObjects)
	if err := until(ctx, "the kind of the objects is served", time.Minute, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := get(ctx, a.http, a.cluster+a.path())
		return err == nil, err
	}); err != nil {
		return err
	}
	if err := many(ctx, contextObjects, createWorkers, func(ctx context.Context, i int) error {
		if _, err := copied.create(ctx, identities, generic(tenantName(i))); err != nil {
			return err
		}
		_, err := a.create(ctx, a.path(), object(tenantGroup+"/v1", "Tenant", tenantName(i), map[string]any{"cluster": tenantCluster(i), "identity": tenantName(i)}))
		return err
	}); err != nil {
		return err
	}
	if _, err := copied.create(ctx, landscapePath+"contextkinds", tenantKind); err != nil {
		return err
	}
	first, err := get(ctx, a.http, a.cluster+a.path()+"/"+tenantName(0))
	if err != nil {
		return err
	}
	var found struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(first, &found); err != nil {
		return err
	}
	a.uid = found.Metadata.UID
	return nil
}

// tokens requests tokens of the identity of the first object, with a context or without.
func (a *tenants) tokens(context string) func(context.Context) error {
	return a.of.tokens(a.of.aggregated+fmt.Sprintf(identityPath, a.namespace)+"/"+tenantName(0)+"/token",
		`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":{"duration":"1h"`+context+`}}`)
}

func (a *tenants) inContext() func(context.Context) error {
	return a.tokens(fmt.Sprintf(`,"contextObject":{"apiVersion":"%s/v1","kind":"Tenant","namespace":%q,"name":%q,"uid":%q}`, tenantGroup, a.namespace, tenantName(0), a.uid))
}

// start starts the server once more, and waits for a token in the context of an object, which it knows when it has read all.
func (a *tenants) start(ctx context.Context, t *table) error {
	once := a.inContext()
	if err := until(ctx, "a token with a context", 5*time.Minute, time.Second, func(ctx context.Context) (bool, error) { err := once(ctx); return err == nil, err }); err != nil {
		return err
	}
	a.of.stop()
	lists := func() (float64, error) {
		metrics, err := a.client.metrics(ctx, a.cluster)
		return sum(metrics, "apiserver_request_total", `resource="tenants"`, `verb="LIST"`), err
	}
	before, err := lists()
	if err != nil {
		return err
	}
	begun := time.Now()
	if a.of.copied, err = a.of.again(ctx); err != nil {
		return err
	}
	if err := until(ctx, "a token with a context after a start", 5*time.Minute, 50*time.Millisecond, func(ctx context.Context) (bool, error) { err := once(ctx); return err == nil, err }); err != nil {
		return err
	}
	filled := time.Since(begun).Seconds()
	after, err := lists()
	if err != nil {
		return err
	}
	memory, err := residentMB(a.of.pid)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("contexts, %d objects of %d clusters and as many identities: ", contextObjects, contextClusters)
	t.add(row{what: what + "from the start of the server to a token with one", unit: "s", ours: filled, peer: "limit", theirs: contextFillSeconds, target: atMost(1)})
	t.add(row{what: what + "memory of the server then", unit: "MB", ours: memory, peer: "limit", theirs: contextMB, target: atMost(1)})
	t.add(row{what: what + "lists of the objects in that", ours: after - before, peer: "limit", theirs: 1, target: atMost(1)})
	return nil
}

func (a *tenants) request(ctx context.Context, s settings, p plane, t *table) error {
	kube, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	const with, without = "in a context", "without a context"
	for _, workers := range concurrencies {
		results, err := rounds(ctx, s, workers, []subject{
			{name: with, once: a.inContext(), pids: []int{a.of.pid}, aside: []int{kube}},
			{name: without, once: a.tokens(""), pids: []int{a.of.pid}, aside: []int{kube}},
		})
		if err != nil {
			return err
		}
		ours, peer := results[with], results[without]
		what := fmt.Sprintf("contexts, %d at a time: ", workers)
		t.add(row{what: what + "time per token in one", unit: "µs", ours: 1e6 * float64(workers) / ours.perSecond, peer: without, theirs: 1e6 * float64(workers) / peer.perSecond, target: atMost(1.1)})
		t.add(row{what: what + "CPU per token in one", unit: "µs", ours: micro(ours.cpu + ours.aside), peer: without, theirs: micro(peer.cpu + peer.aside), target: atMost(1.1)})
	}
	return nil
}

// change has many objects refer to another identity at once, and waits until the agents of their clusters have that.
func (a *tenants) change(ctx context.Context, t *table) error {
	begun := time.Now()
	if err := many(ctx, contextChanges, createWorkers, func(ctx context.Context, i int) error {
		return a.patch(ctx, a.path()+"/"+tenantName(i), `{"spec":{"identity":"`+changedIdentity+`"}}`)
	}); err != nil {
		return err
	}
	written := time.Since(begun).Seconds()
	if err := until(ctx, "changes are followed", 5*time.Minute, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		followed := 0
		for i := 0; i < contextChanges; i += contextObjects / contextClusters {
			deliveries, err := a.deliveries(ctx, tenantCluster(i))
			if err != nil {
				return false, err
			}
			for _, d := range deliveries {
				if d.Spec.WorkloadIdentity != nil && d.Spec.WorkloadIdentity.Name == changedIdentity {
					followed++
				}
			}
		}
		if followed < contextChanges {
			return false, fmt.Errorf("%d of %d", followed, contextChanges)
		}
		return true, nil
	}); err != nil {
		return err
	}
	what := fmt.Sprintf("contexts, %d references that change at once: ", contextChanges)
	t.add(row{what: what + "until all deliveries have changed", unit: "s", ours: time.Since(begun).Seconds(), peer: "limit", theirs: contextFollowSeconds, target: atMost(1)})
	t.add(row{what: what + "of that, until they are written", unit: "s", ours: written, peer: "limit", theirs: contextFollowSeconds})
	return nil
}

func tenantAgent(cluster string) string {
	return "system:serviceaccount:" + identity.WorkloadClusters + ":" + cluster
}

// deliveries are what the agent of a cluster is to deliver.
func (a *tenants) deliveries(ctx context.Context, cluster string) ([]identity.ContextDelivery, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.of.aggregated+landscapePath+"contextdeliveries", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Impersonate-User", tenantAgent(cluster))
	for _, group := range []string{"system:serviceaccounts", "system:serviceaccounts:" + identity.WorkloadClusters, "system:authenticated"} {
		request.Header.Add("Impersonate-Group", group)
	}
	body, err := send(a.http, request, http.StatusOK)
	if err != nil {
		return nil, err
	}
	var list identity.ContextDeliveryList
	err = json.Unmarshal(body, &list)
	return list.Items, err
}
