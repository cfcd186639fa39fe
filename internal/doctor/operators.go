package doctor

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

const (
	rbacAPI      = "/apis/rbac.authorization.k8s.io/v1"
	admissionAPI = "/apis/admissionregistration.k8s.io/v1"
)

// checkOperators looks at the controllers beside Kubernetes' own that may use every service account: each needs a policy that checks the authors
// of its kinds, and an account that no tenant can become.
func checkOperators(ctx context.Context, found *Diagnosis, workload *cluster.API) {
	const check = "operators"
	all := &access.Rights{ClusterRoles: map[string][]rbacv1.PolicyRule{}}
	err := cluster.Each(ctx, workload, cluster.Listing{API: rbacAPI, Resource: "clusterrolebindings"}, func(b *rbacv1.ClusterRoleBinding) { all.ClusterBindings = append(all.ClusterBindings, *b) })
	operators := access.Operators(all.ClusterBindings)
	var kinds []access.Kind
	if err == nil && len(operators) > 0 {
		kinds, err = templateKinds(ctx, workload)
	}
	if err == nil && len(operators) > 0 {
		err = cluster.Each(ctx, workload, cluster.Listing{API: rbacAPI, Resource: "clusterroles"}, func(r *rbacv1.ClusterRole) { all.ClusterRoles[r.Name] = r.Rules })
	}
	if skipped(found, check, "read policies, roles and their bindings", err) {
		return
	}
	if err != nil {
		found.add(check, Fail, "", "read the controllers that may use every service account: %v", err)
		return
	}
	before := len(found.Findings)
	for _, operator := range operators {
		rights, mode, err := rightsIn(ctx, workload, *all, operator.Namespace)
		if skipped(found, check, "get namespace "+operator.Namespace+", or list its roles and rolebindings", err) {
			continue
		}
		if err != nil {
			found.add(check, Fail, "", "read the rights in namespace %s: %v", operator.Namespace, err)
			continue
		}
		if !rights.Follows(operator, kinds) {
			found.add(check, Warn, "a cluster admin runs for each of its kinds with a template of pods: credence access policy --template GROUP/VERSION,RESOURCE=PATH | kubectl apply -f -",
				"%s may use every service account, and no policy checks the authors of its kinds, who so may use them all", operator)
		}
		var tenants []string
		for _, holder := range rights.Tenants(operator, mode) {
			tenants = append(tenants, access.UserName(holder.Subject)+" ("+holder.Way+", by "+holder.By[0].String()+")")
		}
		if len(tenants) > 0 {
			found.add(check, Warn, "credence access who "+operator.Name+" -n "+operator.Namespace+" lists them all: take these bindings away, or run the operator in a namespace of its own",
				"users of namespace %s can become %s, which may use every service account: %s", operator.Namespace, operator, wording.Some(tenants))
		}
	}
	if len(found.Findings) == before {
		found.pass(check, "%s beside Kubernetes' own may use every service account", wording.Plural(len(operators), "controller", "controllers"))
	}
}

// templateKinds are the kinds whose authors are checked by policies that credence access policy prints.
func templateKinds(ctx context.Context, workload *cluster.API) ([]access.Kind, error) {
	type policy struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	var names []string
	err := cluster.Each(ctx, workload, cluster.Listing{API: admissionAPI, Resource: "validatingadmissionpolicies"}, func(p *policy) { names = append(names, p.Metadata.Name) })
	return access.Kinds(names), err
}

// rightsIn adds to what RBAC has in the whole cluster what it has in a namespace, and returns the mode of the namespace.
func rightsIn(ctx context.Context, workload *cluster.API, all access.Rights, namespace string) (_ *access.Rights, mode string, err error) {
	var about metav1.PartialObjectMetadata
	if err := workload.Get(ctx, &about, cluster.Place{Resource: "namespaces", Name: namespace}); err != nil {
		return nil, "", err
	}
	all.Namespace, all.Roles = namespace, map[string][]rbacv1.PolicyRule{}
	err = cluster.Each(ctx, workload, cluster.Listing{API: rbacAPI, Namespace: namespace, Resource: "roles"}, func(r *rbacv1.Role) { all.Roles[r.Name] = r.Rules })
	if err != nil {
		return nil, "", err
	}
	err = cluster.Each(ctx, workload, cluster.Listing{API: rbacAPI, Namespace: namespace, Resource: "rolebindings"}, func(b *rbacv1.RoleBinding) { all.Bindings = append(all.Bindings, *b) })
	return &all, about.Labels[access.ModeLabel], err
}
