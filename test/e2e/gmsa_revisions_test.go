package e2e_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A StatefulSet makes pods of its ControllerRevisions too: a user who writes one writes a template.
func TestPlaneAccountBorrowedByAControllerRevision(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--arg", "webhook=--gmsa-require-user")
	namespace, spec := p.credentialSpecs(t, "mine")
	p.grant(t, namespace, user("jane"), rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "statefulsets", "controllerrevisions"}, Verbs: []string{"*"}})
	jane := p.clientAs(t, "jane")
	labels := map[string]string{"app": "s"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](1), ServiceName: "s", Selector: &metav1.LabelSelector{MatchLabels: labels},
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](5)}},
		Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: windowsPod(nil).Spec},
	}}
	eventually(t, func() error {
		return errOf(jane.AppsV1().StatefulSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}))
	})
	eventually(t, func() error { return errOf(jane.CoreV1().Pods(namespace).Get(t.Context(), "s-0", metav1.GetOptions{})) })
	need(jane.AppsV1().StatefulSets(namespace).Patch(t.Context(), "s", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"second"}]`), metav1.PatchOptions{}))(t)
	eventually(t, func() (err error) { // the status is written after the pod
		if set, err = jane.AppsV1().StatefulSets(namespace).Get(t.Context(), "s", metav1.GetOptions{}); err == nil && set.Status.CurrentRevision == "" {
			err = errors.New("the StatefulSet has no revision yet")
		}
		return err
	})
	revisions := jane.AppsV1().ControllerRevisions(namespace)
	revision := need(revisions.Get(t.Context(), set.Status.CurrentRevision, metav1.GetOptions{}))(t)
	mine := need(json.Marshal(gmsaOf(spec("mine"), "")))(t)
	revision.ResourceVersion, revision.UID = "", ""
	revision.Data = runtime.RawExtension{Raw: []byte(strings.Replace(string(revision.Data.Raw), `"securityContext":{}`, `"securityContext":{"windowsOptions":`+string(mine)+`}`, 1))}
	if !strings.Contains(string(revision.Data.Raw), spec("mine")) {
		t.Fatalf("the test does not change %s", revision.Data.Raw)
	}
	must(t, revisions.Delete(t.Context(), revision.Name, metav1.DeleteOptions{}))
	refusedWith(t, "a revision with an account", errOf(revisions.Create(t.Context(), revision, metav1.CreateOptions{})), 403, `user "jane"`, "data.spec.template.spec.securityContext")
	// Merged into a template that has an account, another image is enough.
	revision.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"iis","image":"janes"}]}}}}`)}
	refusedWith(t, "a part of a template", errOf(revisions.Create(t.Context(), revision, metav1.CreateOptions{})), 403, "user jane may not use all of them")
}
