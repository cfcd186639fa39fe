package quota

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

func made(change func(*v1alpha1.QuotaSpec)) *v1alpha1.Quota {
	q := &v1alpha1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "limits", Name: "all"}}
	q.Spec.Scope = ofProjects
	q.Spec.Metrics = map[string]resource.Quantity{"cpu": resource.MustParse("10"), "storage.premium": resource.MustParse("2000Gi")}
	change(&q.Spec)
	return q
}

func TestValidate(t *testing.T) {
	days := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		change func(*v1alpha1.QuotaSpec)
		want   string
	}{
		"as Gardener has it":   {func(s *v1alpha1.QuotaSpec) { s.ClusterLifetimeDays = days(14) }, ""},
		"of credentials":       {func(s *v1alpha1.QuotaSpec) { s.Scope = ofCredentials[1] }, ""},
		"a lifetime alone":     {func(s *v1alpha1.QuotaSpec) { s.Metrics, s.ClusterLifetimeDays = nil, days(1) }, ""},
		"nothing":              {func(s *v1alpha1.QuotaSpec) { s.Metrics = nil }, "spec.metrics: Required value"},
		"no scope":             {func(s *v1alpha1.QuotaSpec) { s.Scope = v1alpha1.QuotaScope{} }, "spec.scope: Unsupported value"},
		"another scope":        {func(s *v1alpha1.QuotaSpec) { s.Scope.APIVersion = "security.gardener.cloud/v1alpha1" }, `"core.gardener.cloud/v1beta1 Project"`},
		"no day":               {func(s *v1alpha1.QuotaSpec) { s.ClusterLifetimeDays = days(0) }, "spec.clusterLifetimeDays: Invalid value: 0"},
		"too many days":        {func(s *v1alpha1.QuotaSpec) { s.ClusterLifetimeDays = days(36501) }, "spec.clusterLifetimeDays"},
		"a negative limit":     {func(s *v1alpha1.QuotaSpec) { s.Metrics["cpu"] = resource.MustParse("-1") }, "spec.metrics[cpu]: Invalid value: \"-1\": must not be negative"},
		"a metric that is not": {func(s *v1alpha1.QuotaSpec) { s.Metrics["a b"] = resource.MustParse("1") }, "spec.metrics[a b]"},
		"too many metrics": {func(s *v1alpha1.QuotaSpec) {
			for i := range maxMetrics {
				s.Metrics[fmt.Sprint("m", i)] = resource.MustParse("1")
			}
		}, "spec.metrics: Too many"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := strategy{}.Validate(t.Context(), made(test.change))
			if test.want == "" && len(errs) > 0 || !strings.Contains(fmt.Sprint(errs.ToAggregate()), test.want) {
				t.Errorf("%v, want %q", errs, test.want)
			}
		})
	}
}

func TestScopeIsImmutable(t *testing.T) {
	old, after := made(func(*v1alpha1.QuotaSpec) {}), made(func(s *v1alpha1.QuotaSpec) { s.Scope = ofCredentials[0] })
	if errs := (strategy{}).ValidateUpdate(t.Context(), after, old); len(errs) != 1 || errs[0].Field != "spec.scope" {
		t.Errorf("errors %v", errs)
	}
	if got, want := limits(old.Spec), "cpu: 10, storage.premium: 2000Gi"; got != want {
		t.Errorf("limits %q, want %q", got, want)
	}
}

// A status is the server's own, whichever way a client writes it.
func TestStatusIsOfTheLedgers(t *testing.T) {
	lie := v1alpha1.QuotaStatus{Objects: 1, Used: map[string]resource.Quantity{"cpu": resource.MustParse("1")}}
	after, old := made(func(*v1alpha1.QuotaSpec) {}), made(func(*v1alpha1.QuotaSpec) {})
	after.Status = lie
	strategy{}.PrepareForCreate(t.Context(), after)
	if !reflect.DeepEqual(after.Status, v1alpha1.QuotaStatus{}) {
		t.Errorf("created with %+v", after.Status)
	}
	old.Status.Used = map[string]resource.Quantity{"cpu": resource.MustParse("4")}
	after.Status = lie
	strategy{}.PrepareForUpdate(t.Context(), after, old)
	if got, want := used(after), "cpu: 4/10"; got != want || after.Generation != old.Generation {
		t.Errorf("updated to %q, generation %d; want %q", got, after.Generation, want)
	}
	// The server changes the status alone.
	after.Spec.Metrics, after.Status = nil, lie
	statusStrategy{}.PrepareForUpdate(t.Context(), after, old)
	if got, want := used(after), "cpu: 1/10"; got != want {
		t.Errorf("reported %q, want %q", got, want)
	}
}
