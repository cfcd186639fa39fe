package apiserver

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

func TestFollowOwnPolicies(t *testing.T) {
	policy := func(name string, groups ...string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		constraints := &admissionregistrationv1.MatchResources{}
		for _, group := range groups {
			rule := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: []string{"apps", group}}}
			constraints.ResourceRules = append(constraints.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
		}
		return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: constraints}}
	}
	webhooks := func(name, group string) *admissionregistrationv1.MutatingWebhookConfiguration {
		rules := []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{group}}}}
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{{}, {Rules: rules}}}
	}
	client := fake.NewClientset(
		policy("own", "", v1alpha1.GroupName), policy("all", "*"), policy("core", ""), policy("any"), policy("later", "batch"), policy("no-more", "identity.credence.dev"),
		webhooks("own", v1alpha1.GroupName), webhooks("core", ""),
	)
	factory := informers.NewSharedInformerFactory(client, 0)
	followOwn(factory, time.Second)
	admission := factory.Admissionregistration().V1()
	policies, configurations := admission.ValidatingAdmissionPolicies().Lister(), admission.MutatingWebhookConfigurations().Lister()
	factory.StartWithContext(t.Context())
	followed := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		testkit.Wait(t, func(context.Context) error {
			found, err := policies.List(labels.Everything())
			got := make([]string, len(found))
			for i := range found {
				got[i] = found[i].Name
			}
			if slices.Sort(got); err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("policies %v are followed, want %v", got, want)
			}
			return err
		})
	}
	// The fake does not report changes between a list and a watch.
	testkit.Eventually(t, "policies are watched", func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", "validatingadmissionpolicies") })
	})
	followed("own", "all", "any", "no-more")
	api := client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	for _, changed := range []*admissionregistrationv1.ValidatingAdmissionPolicy{policy("later", v1alpha1.GroupName), policy("no-more", "batch"), policy("core", "apps")} {
		testkit.Must(t, testkit.Err(api.Update(t.Context(), changed, metav1.UpdateOptions{})))
	}
	for _, added := range []*admissionregistrationv1.ValidatingAdmissionPolicy{policy("new-core", ""), policy("new-own", v1alpha1.GroupName)} {
		testkit.Must(t, testkit.Err(api.Create(t.Context(), added, metav1.CreateOptions{})))
	}
	followed("own", "all", "any", "later", "new-own")
	factory.WaitForCacheSync(t.Context().Done())
	if found, err := configurations.List(labels.Everything()); err != nil || len(found) != 1 || found[0].Name != "own" {
		t.Errorf("webhooks %v are followed, want own: %v", found, err)
	}
}

// TestFollowKindsThatTheClusterLearns has a cluster that does not serve a kind, and serves it after an upgrade.
func TestFollowKindsThatTheClusterLearns(t *testing.T) {
	client := fake.NewClientset(&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	var absent atomic.Bool
	absent.Store(true)
	lists := make(chan struct{}, 100)
	answer := func(clienttesting.Action) (bool, error) {
		if !absent.Load() {
			return false, nil
		}
		return true, apierrors.NewNotFound(schema.GroupResource{Resource: "mutatingadmissionpolicies"}, "")
	}
	client.PrependReactor("list", "mutatingadmissionpolicies", func(a clienttesting.Action) (bool, runtime.Object, error) {
		lists <- struct{}{}
		handled, err := answer(a)
		return handled, nil, err
	})
	client.PrependWatchReactor("mutatingadmissionpolicies", func(a clienttesting.Action) (bool, watch.Interface, error) {
		handled, err := answer(a)
		return handled, nil, err
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	followOwn(factory, time.Millisecond)
	policies := factory.Admissionregistration().V1().MutatingAdmissionPolicies()
	factory.StartWithContext(t.Context())
	for informer, synced := range factory.WaitForCacheSync(t.Context().Done()) {
		if !synced {
			t.Errorf("%s is waited for", informer)
		}
	}
	known := func() int { return len(policies.Informer().GetStore().ListKeys()) }
	if got := known(); got != 0 {
		t.Errorf("%d policies of a kind that is not served", got)
	}
	<-lists
	absent.Store(false)
	testkit.Eventually(t, "the kind is found", func() bool { return known() == 1 })
}
