package profiles

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/test/testkit"
)

// profileOf is the profile ns/name, whose name is its uid, too.
func profileOf(name string, change func(*accounts.ServiceAccountProfile)) *accounts.ServiceAccountProfile {
	p := &accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 3, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))}}
	if change != nil {
		change(p)
	}
	return p
}

func templated(p *accounts.ServiceAccountProfile) {
	p.Spec.SecurityContext = &accounts.ProfileSecurityContext{TemplateRef: &accounts.TemplateReference{Name: "baseline"}}
}

func listing(p *accounts.ServiceAccountProfile) { p.Spec.WorkloadIdentities = []string{"banana"} }

func named(name string) func(*accounts.ServiceAccountProfile) {
	return func(p *accounts.ServiceAccountProfile) { p.Spec.Username = name }
}

// statuses are over a cluster with objects. stale has the cache show no status that was written.
func statuses(t *testing.T, stale bool, objects ...client.Object) (*Statuses, client.Client, *record.FakeRecorder) {
	t.Helper()
	usernames := testkit.Need(username.Parse("{namespace}/{name}@{cluster}", "east"))(t)
	events := record.NewFakeRecorder(100)
	s := &Statuses{Usernames: usernames, Events: events, Log: slog.New(slog.DiscardHandler), given: map[string]*accounts.ServiceAccountProfile{}}
	s.client = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).
		WithIndex(&accounts.ServiceAccountProfile{}, usernameIndex, func(o client.Object) []string { return s.usernames(o.(*accounts.ServiceAccountProfile)) }).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceApply: func(ctx context.Context, api client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
				if stale {
					return nil
				}
				content, err := json.Marshal(o)
				if err != nil {
					return err
				}
				var applied, stored accounts.ServiceAccountProfile
				if err := json.Unmarshal(content, &applied); err != nil {
					return err
				}
				if err := api.Get(ctx, client.ObjectKeyFromObject(&applied), &stored); err != nil {
					return err
				}
				stored.Status = applied.Status
				return api.Update(ctx, &stored)
			},
		}).Build()
	return s, s.client, events
}

func look(t *testing.T, s *Statuses, name string) *accounts.ServiceAccountProfile {
	t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: name}
	testkit.Must(t, testkit.Err(s.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})))
	found := &accounts.ServiceAccountProfile{}
	testkit.Must(t, s.client.Get(t.Context(), key, found))
	return found
}

// The condition Ready has the first thing that keeps a profile from the pods of its account.
func TestReadyHasTheReason(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	annotated := account.DeepCopy()
	annotated.Annotations = map[string]string{v1alpha1.AnnotationAccountIdentities: "cherry"}
	template := &accounts.SecurityContextTemplate{ObjectMeta: metav1.ObjectMeta{Name: "baseline"}}
	for name, test := range map[string]struct {
		change  func(*accounts.ServiceAccountProfile)
		objects []client.Object
		want    string
	}{
		"account":               {nil, []client.Object{account}, reasonApplied},
		"no account":            {nil, nil, reasonAccountMissing},
		"template":              {templated, []client.Object{account, template}, reasonApplied},
		"no template":           {templated, []client.Object{account}, reasonTemplateMissing},
		"identities":            {listing, []client.Object{account}, reasonApplied},
		"identities twice":      {listing, []client.Object{annotated}, reasonIdentitiesTwice},
		"identities of account": {nil, []client.Object{annotated}, reasonApplied},
	} {
		s, _, events := statuses(t, false, append(test.objects, profileOf("web", test.change))...)
		found := look(t, s, "web")
		ready := meta.FindStatusCondition(found.Status.Conditions, accounts.ConditionReady)
		if ready == nil || ready.Reason != test.want || (ready.Status == metav1.ConditionTrue) != (test.want == reasonApplied) || ready.ObservedGeneration != 3 || found.Status.ObservedGeneration != 3 {
			t.Errorf("%s: %+v, want %s", name, ready, test.want)
		}
		if reported := len(events.Events) > 0; reported != (test.want != reasonApplied) {
			t.Errorf("%s: an Event was written: %t", name, reported)
		}
		if again := look(t, s, "web"); again.ResourceVersion != found.ResourceVersion {
			t.Errorf("%s: written again without a change", name)
		}
	}
}

// One profile has a username: an older one that wants it later gets none while the first has it, also while the cache does not show that yet.
func TestUsernameIsGivenOnce(t *testing.T) {
	for _, stale := range []bool{false, true} {
		s, api, _ := statuses(t, stale, profileOf("first", named("shared@example.com")))
		first := look(t, s, "first")
		testkit.Must(t, api.Create(t.Context(), profileOf("second", func(p *accounts.ServiceAccountProfile) {
			p.Spec.Username, p.CreationTimestamp = "SHARED@example.com", metav1.NewTime(p.CreationTimestamp.Add(-time.Hour))
		})))
		second := look(t, s, "second")
		if second.Status.Username != "" || !stale && first.Status.Username != "shared@example.com" {
			t.Errorf("stale %t: the usernames are %q and %q", stale, first.Status.Username, second.Status.Username)
		}
		decision, err := s.decideUsername(t.Context(), second)
		if err != nil || decision.Username != "" {
			t.Errorf("stale %t: the second gets %+v, %v", stale, decision, err)
		}
		testkit.Must(t, api.Delete(t.Context(), first))
		if decision, err := s.decideUsername(t.Context(), second); err != nil || decision.Username == "" {
			t.Errorf("stale %t: once the first is gone, the second gets %+v, %v", stale, decision, err)
		}
	}
}

// Rivals of a username are looked at when it changes.
func TestRequestsForRivals(t *testing.T) {
	s, _, _ := statuses(t, false, profileOf("first", named("shared@example.com")), profileOf("second", named("shared@example.com")), profileOf("other", nil))
	var got []string
	for _, request := range s.requests(t.Context(), usernameIndex, username.Key("shared@example.com")) {
		got = append(got, request.Name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("looked at are %v", got)
	}
}

func TestProfilesAreCountedByCondition(t *testing.T) {
	ready := func(status metav1.ConditionStatus) func(*accounts.ServiceAccountProfile) {
		return func(p *accounts.ServiceAccountProfile) {
			p.Status.Conditions = []metav1.Condition{{Type: accounts.ConditionReady, Status: status}}
		}
	}
	_, api, _ := statuses(t, false, profileOf("a", ready(metav1.ConditionTrue)), profileOf("b", ready(metav1.ConditionTrue)), profileOf("c", ready(metav1.ConditionFalse)), profileOf("d", nil))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector{api})
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
	}
	for series, want := range map[string]float64{"Ready True": 2, "Ready False": 1, "Ready Unknown": 1, "UsernameUnique Unknown": 4} {
		if got[series] != want {
			t.Errorf("%s: %g, want %g", series, got[series], want)
		}
	}
}

func TestProcessIsNotReadyBeforeItRuns(t *testing.T) {
	process := testkit.Need(New(Config{Cluster: &rest.Config{Host: "https://none.example"}, Lease: types.NamespacedName{Namespace: "ns", Name: "lease"}, Log: slog.New(slog.DiscardHandler)}))(t)
	if process.Ready() == nil {
		t.Error("it is ready, and has read nothing")
	}
}
