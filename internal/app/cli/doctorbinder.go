package cli

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/internal/delivery/rights"
)

// checkBinder looks for namespaces with the label where the agent has no right to Secrets: in one namespace, or in all of them where it
// is empty. It only warns: an agent with --namespaces needs no RoleBinding of the binder, and pods without a token are reported anyway.
func checkBinder(ctx context.Context, found *diagnosis, workload *api, namespace string, enabled map[string]bool) {
	bindings := map[string]*rbacv1.RoleBinding{}
	err := workload.eachRoleBinding(ctx, namespace, rights.AgentSecrets, func(b *rbacv1.RoleBinding) { bindings[b.Namespace] = b })
	if skipped(found, "binder", "list rolebindings", err) {
		return
	}
	if err != nil {
		found.add("binder", verdictFail, "", "list rolebindings: %v", err)
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
			found.add("binder", verdictWarn, hint, "%s: %s", what, some(list))
		}
	}
	add(missing, "see whether credence-server binder runs, and its log; an agent with --namespaces needs none", "namespaces have the label, and no RoleBinding "+rights.AgentSecrets+", so that the agent delivers no tokens there")
	add(foreign, "a cluster admin runs: kubectl delete rolebinding "+rights.AgentSecrets+" -n NAMESPACE; the binder then makes its own", "the RoleBinding "+rights.AgentSecrets+" gives something else than the binder's, so that the agent may not deliver tokens there")
	add(reserved, "use another namespace: in credence-system and kube-* no tokens are delivered", "the label has no effect in some namespaces")
	if served > 0 {
		found.pass("binder", "the agent may deliver tokens in %s", plural(served, "namespace", "namespaces"))
	}
}

// eachRoleBinding reads the RoleBindings of a name page by page, of one namespace or of all (empty).
func (a *api) eachRoleBinding(ctx context.Context, namespace, name string, visit func(*rbacv1.RoleBinding)) error {
	path := "/apis/rbac.authorization.k8s.io/v1/"
	if namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	query := url.Values{"fieldSelector": {"metadata.name=" + name}, "limit": {strconv.Itoa(objectsPerPage)}}
	for {
		var page rbacv1.RoleBindingList
		if err := a.raw(ctx, &page, path+"rolebindings?"+query.Encode()); err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		query.Set("continue", page.Continue)
	}
}
