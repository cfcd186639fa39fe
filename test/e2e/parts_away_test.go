package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// While parts of Credence hang, Kubernetes' own controllers go on: quotas are counted, garbage is collected, namespaces are deleted. Only the
// deletion of namespaces waits for the API server, as for each API that is away, and ends when it is back.
func TestPlaneWithPartsAway(t *testing.T) {
	withPlane(t)
	p := newPlane(t)
	for _, away := range [][]string{{"apiserver"}, {"controller", "agent", "binder", "profiles", "webhook", "discovery"}} {
		namespace := "without-" + away[0]
		core := p.client(t).CoreV1()
		must(t, errOf(core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})))
		var resume []func()
		for _, name := range away {
			resume = append(resume, p.suspend(t, name))
		}
		p.controllersWork(t, namespace)
		must(t, core.Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
		if away[0] == "apiserver" {
			eventually(t, func() error {
				found, err := core.Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
				if err != nil {
					return fatal{err}
				}
				if !slices.ContainsFunc(found.Status.Conditions, func(c corev1.NamespaceCondition) bool {
					return c.Status == corev1.ConditionTrue && (c.Type == corev1.NamespaceDeletionDiscoveryFailure || c.Type == corev1.NamespaceDeletionContentFailure)
				}) {
					return fmt.Errorf("the namespace does not report why it waits: %+v", found.Status)
				}
				return nil
			})
			resume[0]()
		}
		eventually(t, func() error {
			found, err := core.Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("without %s namespace %s is still there: %+v, %v", away, namespace, found.Status, err)
		})
		for _, each := range resume {
			each()
		}
	}
}

// controllersWork has a ResourceQuota counted, and a dependent collected.
func (p plane) controllersWork(t *testing.T, namespace string) {
	t.Helper()
	core := p.client(t).CoreV1()
	must(t, errOf(core.ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "ids"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("100")}},
	}, metav1.CreateOptions{})))
	owner := need(core.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{}))(t)
	must(t, errOf(core.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "dependent", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})))
	counted := func(atLeast bool) func() error {
		return func() error {
			found, err := core.ResourceQuotas(namespace).Get(t.Context(), "ids", metav1.GetOptions{})
			if err != nil {
				return err
			}
			// kube-root-ca.crt is a third one, which comes a moment after its namespace.
			if used := found.Status.Used["count/configmaps"]; used.Value() == 0 || (used.Value() >= 2) != atLeast {
				return fmt.Errorf("quota of %s: used %s", namespace, used.String())
			}
			return nil
		}
	}
	eventually(t, counted(true))
	must(t, core.ConfigMaps(namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	eventually(t, func() error {
		if _, err := core.ConfigMaps(namespace).Get(t.Context(), "dependent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the dependent in %s is still there: %v", namespace, err)
		}
		return nil
	})
	eventually(t, counted(false))
}

// suspend stops a component, which hangs until the returned function is called, or the test ends.
func (p plane) suspend(t *testing.T, name string) (resume func()) {
	t.Helper()
	now := need(readPlane(p.Dir))(t)
	at := slices.IndexFunc(now.Components, func(c component) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("%s does not run", name)
	}
	pid := now.Components[at].PID
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	stopped(t, pid)
	resume = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Errorf("go on with %s: %v", name, err)
		}
	})
	t.Cleanup(resume)
	return resume
}
