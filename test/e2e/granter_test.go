package e2e_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestMakerKeepsBindings tries what a maker of accounts could have deleted by an owner.
func TestMakerKeepsBindings(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	maker := "maker-" + namespace
	shared.bind(t, namespace, "credence:accounts:maker", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: maker})
	shared.bind(t, namespace, "view", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "other"})
	client := shared.clientAs(t, maker).RbacV1().RoleBindings(namespace)
	var all *rbacv1.RoleBindingList
	eventually(t, func() (err error) { all, err = client.List(t.Context(), metav1.ListOptions{}); return err })
	if len(all.Items) < 2 {
		t.Fatalf("%d RoleBindings", len(all.Items))
	}
	for _, each := range all.Items {
		for what, patch := range map[string]string{
			"an owner":    `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
			"a finalizer": `{"metadata":{"finalizers":["e2e.example/x"]}}`,
		} {
			refused(t, "to give binding "+each.Name+" "+what, errOf(client.Patch(t.Context(), each.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})), "only a user that may delete it")
		}
	}
	// A controller may use the accounts of all namespaces, and leaves deletion to the garbage collector.
	controller := "controller-" + namespace
	shared.bindCluster(t, controller, "credence:controllers")
	shared.grant(t, namespace, user(controller), rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"patch"}})
	eventually(t, func() error {
		return errOf(shared.clientAs(t, controller).RbacV1().RoleBindings(namespace).Patch(t.Context(), all.Items[0].Name, types.MergePatchType,
			[]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}))
	})
}

// TestGranter tries out what a platform team may do with the role that is handed out to it, and what it may not.
func TestGranter(t *testing.T) {
	inTurn(t)
	namespace, elsewhere := shared.namespace(t), shared.namespace(t)
	user := "granter-" + namespace
	shared.bind(t, namespace, "credence:workloadidentities:granter", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: user})
	client := shared.clientAs(t, user).RbacV1()
	bind := func(namespace, role string, subjects ...rbacv1.Subject) (*rbacv1.RoleBinding, error) {
		return client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   subjects,
		}, metav1.CreateOptions{})
	}
	create := func(where, role string) (*rbacv1.RoleBinding, error) {
		return bind(where, role, rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace})
	}
	var binding *rbacv1.RoleBinding
	eventually(t, func() (err error) { binding, err = create(namespace, "credence:workloadidentities:user"); return err })
	binding.Subjects = nil
	_, err := client.RoleBindings(namespace).Update(t.Context(), binding, metav1.UpdateOptions{})
	allowed(t, "to take it back", err)

	// The agent's role has the verb assert: it is for agents.
	const agentRole = "credence:agent:identities"
	ofAgent := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "credence-system", Name: "credence-agent"}
	binding, err = bind(namespace, agentRole, ofAgent)
	allowed(t, "the agent's role, to the agent", err)
	allowed(t, "the agent's role, to the agent of a cluster", errOf(bind(namespace, agentRole, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "workload-clusters", Name: "east-agent"})))
	for what, subject := range map[string]rbacv1.Subject{
		"itself":                 {Kind: "User", APIGroup: rbacv1.GroupName, Name: user},
		"all":                    {Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:authenticated"},
		"an account":             {Kind: "ServiceAccount", Namespace: namespace, Name: "credence-agent"},
		"a webhook of a cluster": {Kind: "ServiceAccount", Namespace: "workload-clusters", Name: "east-webhook"},
		"the agent, as a user":   {Kind: "User", APIGroup: rbacv1.GroupName, Name: "credence-agent"},
		"an agent elsewhere":     {Kind: "ServiceAccount", Namespace: elsewhere, Name: "east-agent"},
	} {
		refused(t, "the agent's role, to "+what, errOf(bind(namespace, agentRole, ofAgent, subject)), "ClusterRole credence:agent:identities is for agents")
		changed := binding.DeepCopy()
		changed.Subjects = append(changed.Subjects, subject)
		refused(t, "the agent's role, by an update, to "+what, errOf(client.RoleBindings(namespace).Update(t.Context(), changed, metav1.UpdateOptions{})), "ClusterRole credence:agent:identities is for agents")
	}

	for _, role := range []string{"credence:workloadidentities:token-creator", "edit", "cluster-admin"} {
		refused(t, "to bind "+role, errOf(create(namespace, role)), "not currently held")
	}
	refused(t, "another namespace", errOf(create(elsewhere, "credence:workloadidentities:user")), "cannot create resource")
	refused(t, "to delete bindings", client.RoleBindings(namespace).Delete(t.Context(), binding.Name, metav1.DeleteOptions{}), "cannot delete resource")
	for what, patch := range map[string]string{
		"an owner":    `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
		"a finalizer": `{"metadata":{"finalizers":["e2e.example/x"]}}`,
	} {
		refused(t, "to give a binding "+what, errOf(client.RoleBindings(namespace).Patch(t.Context(), binding.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})), "only a user that may delete it")
	}
}
