package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A copy may read the records that it is made of, or create those that it makes, and find the pods of the API server: nothing else.
func TestRightsOfACopy(t *testing.T) {
	const servers = "storage.etcd.servers={https://etcd:2379}"
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
	key := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"credence-records"}, Verbs: []string{"get"}}
	for _, c := range []struct {
		from, to string
		want     []rbacv1.PolicyRule
	}{
		{"embedded", "etcd", []rbacv1.PolicyRule{pods}},
		{"cluster", "etcd", []rbacv1.PolicyRule{pods, key, {APIGroups: []string{"storage.credence.dev"}, Resources: []string{"records"}, Verbs: []string{"get", "list"}}}},
		{"etcd", "cluster", []rbacv1.PolicyRule{pods, key, {APIGroups: []string{"storage.credence.dev"}, Resources: []string{"records"}, Verbs: []string{"get", "list", "create", "restore"}}}},
	} {
		objects := template(t, "issuer="+issuer, servers, "storage.copyFrom="+c.from, "storage.type="+c.to)
		var granted []rbacv1.PolicyRule
		for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
			for _, o := range objects {
				if o.GetKind() != kind || !strings.Contains(fmt.Sprint(o.Object["subjects"]), "name:credence-storage-copy") {
					continue
				}
				bound := as[rbacv1.RoleBinding](t, o).RoleRef
				for _, role := range objects {
					if role.GetKind() == bound.Kind && role.GetName() == bound.Name {
						granted = append(granted, as[rbacv1.Role](t, role).Rules...)
					}
				}
			}
		}
		if diff := cmp.Diff(c.want, granted); diff != "" {
			t.Errorf("from %s to %s (-want +have):\n%s", c.from, c.to, diff)
		}
	}
}

// moveIntoRecords moves the objects of an etcd into records, as docs/howto/store-in-the-cluster.md has it. There are records of an installation
// before, so the copy is refused, and no API server starts on them; then they are removed.
func (p *partial) moveIntoRecords(t *testing.T) {
	t.Helper()
	upgrade := func(set ...string) error {
		_, stderr, err := helm(t, p.kubeconfig, with([]string{"upgrade", "credence", p.chart, "--namespace", system, "--reuse-values"}, set...)...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	}
	if err := upgrade("storage.type=cluster", "storage.copyFrom=etcd"); err != nil {
		t.Fatal(err)
	}
	const refused = "the target is not empty"
	eventually(t, func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=storage-copy"})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Status.ContainerStatuses {
				if ended := container.State.Terminated; ended != nil && strings.Contains(ended.Message, refused) {
					return nil
				}
			}
		}
		return fmt.Errorf("no pod ended with %q: %s", refused, state(t, p.client, system))
	})
	if err := upgrade("storage.copyFrom="); err == nil || !strings.Contains(err.Error(), "has not copied the objects to cluster") {
		t.Errorf("an API server on what is not a copy: %v", err)
	}
	if err := upgrade("storage.etcd.servers={https://other.example.com:2379}"); err == nil || !strings.Contains(err.Error(), "the Job of another copy is there") {
		t.Errorf("a second copy beside the first: %v", err)
	}
	p.command(t, "kubectl", "delete", "records.storage.credence.dev", "--all", "--as=system:serviceaccount:credence-system:credence-apiserver")
	p.copied(t)
}

// copied waits until a copy has succeeded, and starts the API server on it.
func (p *partial) copied(t *testing.T) {
	t.Helper()
	p.finished(t, "storage-copy", "credence-storage-copy", batchv1.JobComplete)
	p.helm(t, "upgrade", "credence", p.chart, "--reuse-values", "--set", "storage.copyFrom=")
	available(t, p.ControlPlane)
	if _, err := p.client.BatchV1().Jobs(system).Get(t.Context(), "credence-storage-copy", metav1.GetOptions{}); err == nil {
		t.Error("the Job of the copy is left")
	}
}
