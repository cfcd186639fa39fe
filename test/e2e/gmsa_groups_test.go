package e2e_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// A right of all service accounts of a namespace counts. A right of all authenticated users does not: it would give every pod
// of the cluster the account.
func TestAccountsByGroups(t *testing.T) {
	inTurn(t)
	namespace, _ := shared.credentialSpecs(t)
	pods := shared.client(t).CoreV1().Pods(namespace)
	create := func(name string) error {
		return errOf(pods.Create(t.Context(), windowsPod(gmsaOf(name, "")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	grant := func(name, group string) {
		shared.createSpec(t, name)
		shared.grant(t, namespace, rbacv1.Subject{Kind: "Group", Name: group, APIGroup: rbacv1.GroupName},
			rbacv1.PolicyRule{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{name}, Verbs: []string{"use"}})
	}
	everybodys, ours := namespace+"-everybodys", namespace+"-ours"
	grant(everybodys, "system:authenticated")
	grant(ours, "system:serviceaccounts:"+namespace)
	// The second right counts once the API server knows it, and then it knows the first.
	eventually(t, func() error { return create(ours) })
	refusedWith(t, "a right of all users", create(everybodys), 403, `may not use GMSACredentialSpec "`+everybodys+`"`)
}

// The same holds for identities: where pods are admitted, and where tokens are issued.
func TestIdentitiesByGroups(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	core := shared.client(t).CoreV1()
	for _, name := range []string{"everybodys", "ours"} {
		shared.awsIdentity(t, namespace, name, name)
		group := map[string]string{"everybodys": "system:authenticated", "ours": "system:serviceaccounts:" + namespace}[name]
		shared.grant(t, namespace, rbacv1.Subject{Kind: "Group", Name: group, APIGroup: rbacv1.GroupName},
			rbacv1.PolicyRule{APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities"}, ResourceNames: []string{name}, Verbs: []string{"use"}})
		eventually(t, func() error {
			return errOf(core.ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: name}}}, metav1.CreateOptions{}))
		})
	}
	// The second right counts once the API server knows it, and then it knows the first.
	eventually(t, func() error { return errOf(core.Pods(namespace).Create(t.Context(), podOf("ours"), dryRun)) })
	refusedWith(t, "a right of all users", errOf(core.Pods(namespace).Create(t.Context(), podOf("everybodys"), dryRun)), 403, `may not use workload identity "everybodys"`)
	eventually(t, func() error {
		if _, stderr, code := shared.command(t, "", "credence", "token", "create", "ours", "-n", namespace, "--context", "serviceaccount/ours"); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	if stdout, stderr, code := shared.command(t, "", "credence", "token", "create", "everybodys", "-n", namespace, "--context", "serviceaccount/everybodys"); code == 0 || stdout != "" {
		t.Errorf("a token for a service account that has the right as all users have it: exit code %d, %s", code, stderr)
	}
}
