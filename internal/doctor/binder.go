package doctor

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/wording"
)

// checkBinder looks for namespaces with the label where the agent has no right to Secrets: in one namespace, or in all of them where it
// is empty. It only warns: an agent with --namespaces needs no RoleBinding of the binder, and pods without a token are reported anyway.
func checkBinder(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace string, enabled map[string]bool) {
	bindings := map[string]*rbacv1.RoleBinding{}
	all := cluster.Listing{API: "/apis/rbac.authorization.k8s.io/v1", Namespace: namespace, Resource: "rolebindings", Fields: "metadata.name=" + rights.AgentSecrets}
	err := cluster.Each(ctx, workload, all, func(b *rbacv1.RoleBinding) { bindings[b.Namespace] = b })
	if skipped(found, "binder", "list rolebindings", err) {
		return
	}
	if err != nil {
		found.add("binder", Fail, "", "list rolebindings: %v", err)
		return
	}
	served := 0
	var reserved, missing, foreign []string
	for name, labeled := range enabled {
		switch binding := bindings[name]; {
		case !labeled || namespace != "" && name != namespace:
		case rights.Reserved(name):
			reserved = append(reserved, name)
		case binding == nil:
			missing = append(missing, name)
		case !rights.LetDeliver(binding):
			foreign = append(foreign, name)
		default:
			served++
		}
	}
	add := func(list []string, hint, what string) {
		if slices.Sort(list); len(list) > 0 {
			found.add("binder", Warn, hint, "%s: %s", what, wording.Some(list))
		}
	}
	add(missing, "see whether credence-server binder runs, and its log; an agent with --namespaces needs none", "namespaces have the label, and no RoleBinding "+rights.AgentSecrets+", so that the agent delivers no tokens there")
	add(foreign, "a cluster admin runs: kubectl delete rolebinding "+rights.AgentSecrets+" -n NAMESPACE; the binder then makes its own", "the RoleBinding "+rights.AgentSecrets+" gives something else than the binder's, so that the agent may not deliver tokens there")
	add(reserved, "use another namespace: in credence-system and kube-* no tokens are delivered", "the label has no effect in some namespaces")
	if served > 0 {
		found.pass("binder", "the agent may deliver tokens in %s", wording.Plural(served, "namespace", "namespaces"))
	}
}
