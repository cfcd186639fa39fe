package e2e_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// A pod whose author made a workload of another account its owner does not have it restarted.
func restartsOfAnotherAccount(t *testing.T, p plane) {
	d := newDrifting(t, p, `{"onChange":"Restart"}`)
	d.must(t, "", "kubectl", "create", "serviceaccount", "victim", "-n", d.namespace)
	victim := deploymentOf("a-victim", 1)
	victim.Spec.Template.Spec.ServiceAccountName = "victim"
	created := need(d.client(t).AppsV1().Deployments(d.namespace).Create(t.Context(), victim, metav1.CreateOptions{}))(t)
	d.deploy(t, "own")
	pod := podOf("web")
	pod.Labels = map[string]string{"app": "web", "name": created.Name}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: created.Name, UID: created.UID, Controller: ptr.To(true)}}
	need(d.client(t).CoreV1().Pods(d.namespace).Create(t.Context(), pod, metav1.CreateOptions{}))(t)
	d.awaitStatus(t, "three pods in spec", outOfSpec(3, 0, "PodsInSpec"))
	d.changeRole(t, "other")
	d.awaitRestarted(t, "own")
	d.awaitStatus(t, "the pod of no workload of the account is left", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(3, 1, "PodsOutOfSpec")(s, c) && strings.Contains(c.Message, "1 of them are of no Deployment, StatefulSet or DaemonSet of the account")
	})
	if at, _ := d.restarts(t); at["a-victim"] != "" || at["own"] == "" {
		t.Errorf("restarted at %s", at)
	}
}
