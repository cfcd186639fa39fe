package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/test/testkit"
)

// A namespace with many profiles, whose statuses are all to be written, holds up neither the eviction of another one, nor the statuses of a third for
// longer than one look; and all of its own are written in the end.
func TestOneNamespaceOfMany(t *testing.T) {
	const many = 100
	clock, did := testingclock.NewFakeClock(begin), []string(nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"items":[]}`
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/eviction"):
			did, answer = append(did, "evict "+path), `{}`
		case strings.HasPrefix(path, "/api/v1/namespaces/") && strings.Count(path, "/") == 4:
			answer = `{"metadata":{"labels":{"identity.credence.dev/profiles":"enabled"}}}`
		case path == "/api/v1/namespaces/b/pods":
			answer = `{"items":[{"metadata":{"name":"p","namespace":"b","uid":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"r","controller":true}]},
				"spec":{"serviceAccountName":"web","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}]}`
		case path == "/apis/apps/v1/namespaces/b/replicasets":
			answer = `{"items":[{"metadata":{"name":"r","uid":"r"},"spec":{"replicas":1},"status":{"readyReplicas":1}}]}`
		case strings.HasSuffix(path, "/b/serviceaccounts"):
			answer = `{"items":[{"metadata":{"name":"web","namespace":"b"}}]}`
		case strings.HasSuffix(path, "/b/serviceaccountprofiles"):
			answer = `{"items":[{"metadata":{"name":"web","namespace":"b"},"spec":{"securityContext":{"pod":{"runAsUser":7}}}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer) // a test's own connection
	}))
	defer server.Close()
	opened := testkit.Need(cluster.New(&rest.Config{Host: server.URL, QPS: -1}))(t)
	scheme := runtime.NewScheme()
	testkit.Must(t, accounts.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme)
	profile := func(namespace, name string, onChange accounts.OnChange) {
		builder.WithObjects(&accounts.ServiceAccountProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}, Spec: accounts.ServiceAccountProfileSpec{OnChange: onChange},
		})
	}
	for i := range many {
		profile("a", fmt.Sprintf("p%02d", i), accounts.OnChangeReport)
	}
	profile("b", "web", accounts.OnChangeEvict)
	profile("c", "web", accounts.OnChangeReport)
	written := map[string]bool{}
	c := &Controller{
		Clusters: cluster.Both{Workload: opened, Identity: opened}, Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Events: &record.FakeRecorder{}, Periods: DefaultPeriods, Clock: clock,
		Recorder: NewRecorder(prometheus.NewRegistry()), memories: map[types.UID]*memory{},
		client: builder.WithInterceptorFuncs(interceptor.Funcs{
			SubResourceApply: func(ctx context.Context, api client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
				clock.Step(time.Second) // each takes as long
				content, err := json.Marshal(o)
				if err != nil {
					return err
				}
				var status accounts.ServiceAccountProfile
				if err := json.Unmarshal(content, &status); err != nil {
					return err
				}
				key := types.NamespacedName{Namespace: status.Namespace, Name: status.Name}
				did, written[key.String()] = append(did, "write "+key.String()), true
				var stored accounts.ServiceAccountProfile
				if err := api.Get(ctx, key, &stored); err != nil {
					return err
				}
				stored.Status = status.Status
				return api.Update(ctx, &stored)
			},
		}).Build(),
	}
	look := func() []string {
		t.Helper()
		did = nil
		testkit.Must(t, c.look(t.Context()))
		return did
	}
	if first := look(); !slices.Contains(first, "write b/web") || !slices.Contains(first, "write c/web") || len(first) > 40 {
		t.Errorf("the first of %d looks of half a minute wrote %d, %q", 1+many/30, len(first), first)
	}
	clock.Step(DefaultPeriods.Pace)
	if second := look(); !slices.Equal(second[:min(len(second), 1)], []string{"evict /api/v1/namespaces/b/pods/p/eviction"}) || len(second) > 40 {
		t.Errorf("the second look did %d, first %q", len(second), second[:min(len(second), 3)])
	}
	for range 1 + many/30 {
		look()
	}
	if len(written) != many+2 {
		t.Errorf("%d of %d statuses were written", len(written), many+2)
	}
}
