package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// A ResourceQuota of the cluster bounds how many identities a namespace has.
func TestQuotaCountsIdentities(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	admin := shared.config(t)
	const counted = corev1.ResourceName("count/workloadidentities.authentication.gardener.cloud")
	quotas := shared.client(t).CoreV1().ResourceQuotas(namespace)
	must(t, errOf(quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "identities"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{counted: resource.MustParse("2")}}}, metav1.CreateOptions{})))
	used := func(want string) {
		t.Helper()
		eventually(t, func() error {
			quota, err := quotas.Get(t.Context(), "identities", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if used, ok := quota.Status.Used[counted]; !ok {
				// The quota controller may not know the API yet, and looks again when the quota changes.
				configMaps := quota.Spec.Hard[corev1.ResourceConfigMaps]
				configMaps.Add(resource.MustParse("100"))
				quota.Spec.Hard[corev1.ResourceConfigMaps] = configMaps
				_, err := quotas.Update(t.Context(), quota, metav1.UpdateOptions{})
				return fmt.Errorf("status %+v, want %s used (%v)", quota.Status, want, err)
			} else if used.String() != want {
				return fmt.Errorf("status %+v, want %s used", quota.Status, want)
			}
			return nil
		})
	}
	create := func(name string) response {
		return do(t, admin, "POST", identitiesPath(namespace), "application/json", identityJSON(name, "generic", "a"))
	}
	used("0")
	for _, name := range []string{"one", "two"} {
		if got := create(name); got.Code != 201 {
			t.Fatalf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	used("2")
	if got := create("three"); got.Code != 403 {
		t.Fatalf("the third of two: %d %s, want 403", got.Code, got.Body)
	}
	if got := do(t, admin, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)); got.Code != 201 {
		t.Errorf("a token, where the quota is used up: %d %s", got.Code, got.Body)
	}
	if got := do(t, admin, "DELETE", identitiesPath(namespace)+"/two", "", ""); got.Code != 200 {
		t.Fatalf("delete: %d %s", got.Code, got.Body)
	}
	eventually(t, func() error {
		if got := create("three"); got.Code != 201 {
			return fmt.Errorf("after one was deleted: %d %s", got.Code, got.Body)
		}
		return nil
	})
}

// The API server of Credence, taken over, decides about no other entry of a ResourceQuota: not about pods of a namespace, and not what it may have.
func TestAPIServerCountsItsOwnResources(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	const counted = corev1.ResourceName("count/workloadidentities.authentication.gardener.cloud")
	server := shared.clientAs(t, "system:serviceaccount:credence-system:credence-apiserver").CoreV1().ResourceQuotas(namespace)
	quotas := shared.client(t).CoreV1().ResourceQuotas(namespace)
	three := resource.MustParse("3")
	need(quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: three, counted: three}}}, metav1.CreateOptions{}))(t)
	eventually(t, func() error {
		quota, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
		if err == nil && quota.Status.Hard == nil {
			err = errors.New("the quota controller has not seen it")
		}
		return err
	})
	update := func(change func(*corev1.ResourceQuota)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			quota := need(quotas.Get(t.Context(), "q", metav1.GetOptions{}))(t)
			if quota.Status.Used == nil {
				quota.Status.Used = corev1.ResourceList{}
			}
			change(quota)
			return errOf(server.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}))
		})
	}
	for name, change := range map[string]func(*corev1.ResourceQuota){
		"used up":        func(q *corev1.ResourceQuota) { q.Status.Used[corev1.ResourcePods] = three },
		"allowed more":   func(q *corev1.ResourceQuota) { q.Status.Hard[corev1.ResourcePods] = resource.MustParse("999") },
		"not counted":    func(q *corev1.ResourceQuota) { delete(q.Status.Hard, corev1.ResourcePods) },
		"another count":  func(q *corev1.ResourceQuota) { q.Status.Used["count/deployments.apps"] = three },
		"of a like name": func(q *corev1.ResourceQuota) { q.Status.Used["count/x.evil.identity.credence.dev"] = three },
		"metadata":       func(q *corev1.ResourceQuota) { q.Labels = map[string]string{"a": "b"} },
	} {
		refused(t, name, update(change), "credence-apiserver may change")
	}
	expect(t, update(func(q *corev1.ResourceQuota) { q.Status.Used[counted] = resource.MustParse("1") }), "its own count")
}
