package cli

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// agentSecretsRole is the ClusterRole for Secrets, and its RoleBinding in each namespace with the label; the binder makes them.
const agentSecretsRole = "credence:agent:secrets"

// checkBinder looks for namespaces with the label where the agent has no right to Secrets: in one namespace, or in all of them where it
// is empty. It only warns: an agent with --namespaces needs no RoleBinding of the binder, and pods without a token are reported anyway.
func checkBinder(ctx context.Context, found *diagnosis, workload *api, namespace string, enabled map[string]bool) {
	bindings := map[string]*rbacv1.RoleBinding{}
	err := workload.eachRoleBinding(ctx, namespace, agentSecretsRole, func(b *rbacv1.RoleBinding) { bindings[b.Namespace] = b })
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
		case name == systemNamespace || strings.HasPrefix(name, "kube-"):
			reserved = append(reserved, name)
		case binding == nil:
			missing = append(missing, name)
		case !bindsAgent(binding):
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
	add(missing, "see whether credence-server binder runs, and its log; an agent with --namespaces needs none", "namespaces have the label, and no RoleBinding "+agentSecretsRole+", so that the agent delivers no tokens there")
	add(foreign, "a cluster admin runs: kubectl delete rolebinding "+agentSecretsRole+" -n NAMESPACE; the binder then makes its own", "the RoleBinding "+agentSecretsRole+" gives something else than the binder's, so that the agent may not deliver tokens there")
	add(reserved, "use another namespace: in credence-system and kube-* no tokens are delivered", "the label has no effect in some namespaces")
	if served > 0 {
		found.pass("binder", "the agent may deliver tokens in %s", plural(served, "namespace", "namespaces"))
	}
}

// bindsAgent reports whether a RoleBinding is as the binder makes it.
func bindsAgent(b *rbacv1.RoleBinding) bool {
	return b.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentSecretsRole} &&
		slices.Equal(b.Subjects, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: agentAccount}})
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
