package e2e_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A right of all service accounts of a namespace counts. One of everybody who is authenticated does not: it would give every pod
// of the cluster the account.
func TestAccountsByGroups(t *testing.T) {
	namespace, _ := shared.credentialSpecs(t)
	pods := shared.client(t).CoreV1().Pods(namespace)
	create := func(name string) error {
		_, err := pods.Create(t.Context(), windowsPod(gmsaOf(name, "")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
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
	refusedWith(t, "a right of everybody", create(everybodys), 403, `may not use GMSACredentialSpec "`+everybodys+`"`)
}
