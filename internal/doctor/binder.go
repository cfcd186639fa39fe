package doctor

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/wording"
)

// made are the RoleBindings that the binder makes in each namespace with the label: what each allows, and what fails without it.
var made = []struct {
	name              string
	of                func(namespace string) *rbacv1.RoleBinding
	lets, lacks, hint string
}{
	{rights.AgentSecrets, rights.OfAgent, "the agent may deliver tokens", "the agent delivers no tokens", "; an agent with --namespaces needs none"},
	{rights.WebhookPods, rights.OfWebhook, "the webhook may count pods", "the webhook does not count the pods that still use an identity which is taken off their account", ""},
}

// checkBinder looks for namespaces with the label where agent or webhook lack their rights: in one namespace, or in all of them where it
// is empty. It only warns: an agent with --namespaces needs no RoleBinding of the binder, and pods without a token are reported anyway.
func checkBinder(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace string, enabled map[string]bool) {
	add := func(list []string, hint, what string) {
		if slices.Sort(list); len(list) > 0 {
			found.add("binder", Warn, hint, "%s: %s", what, wording.Some(list))
		}
	}
	for _, m := range made {
		bindings := map[string]*rbacv1.RoleBinding{}
		all := cluster.Listing{API: rbacAPI, Namespace: namespace, Resource: "rolebindings", Fields: "metadata.name=" + m.name}
		err := cluster.Each(ctx, workload, all, func(b *rbacv1.RoleBinding) { bindings[b.Namespace] = b })
		if skipped(found, "binder", "list rolebindings", err) {
			return
		}
		if err != nil {
			found.add("binder", Fail, "", "list rolebindings: %v", err)
			return
		}
		served := 0
		var missing, foreign []string
		for name, labeled := range enabled {
			binding := bindings[name]
			switch {
			case !labeled || namespace != "" && name != namespace || rights.Reserved(name):
			case binding == nil:
				missing = append(missing, name)
			case !rights.Gives(binding, m.of(name)):
				foreign = append(foreign, name)
			default:
				served++
			}
		}
		add(missing, "see whether credence-server binder runs, and its log"+m.hint, "namespaces have the label, and no RoleBinding "+m.name+", so that "+m.lacks+" there")
		add(foreign, "a cluster admin runs: kubectl delete rolebinding "+m.name+" -n NAMESPACE; the binder then makes its own", "the RoleBinding "+m.name+" gives something else than the binder's, so that "+m.lacks+" there")
		if served > 0 {
			found.pass("binder", "%s in %s", m.lets, wording.Plural(served, "namespace", "namespaces"))
		}
	}
	var reserved []string
	for name, labeled := range enabled {
		if labeled && rights.Reserved(name) && (namespace == "" || name == namespace) {
			reserved = append(reserved, name)
		}
	}
	add(reserved, "use another namespace: in credence-system and kube-* no tokens are delivered", "the label has no effect in some namespaces")
}
