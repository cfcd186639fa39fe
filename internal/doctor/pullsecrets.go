package doctor

import (
	"context"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

const pullSecrets = "pull-secrets"

// checkPullSecrets looks at the Secrets in which credence-registry is to keep passwords, and at that program.
func (d *Examination) checkPullSecrets(ctx context.Context, found *Diagnosis, workload *cluster.API, known *inventory.Report) {
	p := d.passwords(known)
	if p.count == 0 {
		return
	}
	d.checkRegistry(ctx, found, workload, p.namespaces)
	report := func(list []string, what string) {
		if len(list) > 0 {
			found.add(pullSecrets, Fail, "what the Events mean: docs/reference/events.md#on-secrets-with-passwords-of-registries",
				"%d of %d %s: %s", len(list), p.count, what, wording.Some(list))
		}
	}
	report(p.none, "have no passwords of the registries that they list")
	report(p.stale, "have passwords of another token, or of other registries than they list")
	report(p.overdue, "have passwords that are overdue for renewal")
	if p.fresh > 0 && len(p.none)+len(p.stale)+len(p.overdue) == 0 {
		found.pass(pullSecrets, "the passwords in %s are fresh", wording.Plural(p.fresh, "Secret", "Secrets"))
	}
}

// passwords are the Secrets that list registries, and those of them whose passwords are not as they should be.
type passwords struct {
	count, fresh         int
	namespaces           map[string]bool
	none, stale, overdue []string
}

// passwords looks at Secrets with a valid token: others are reported with the tokens.
func (d *Examination) passwords(known *inventory.Report) passwords {
	p := passwords{namespaces: map[string]bool{}}
	for _, identity := range known.Identities {
		for _, t := range identity.Deliveries {
			if t.Passwords == nil {
				continue
			}
			p.count++
			p.namespaces[t.Namespace] = true
			why := d.why(identity, t)
			name := t.Namespace + "/" + t.Secret + why
			switch {
			case t.Expires == nil || !t.Expires.After(d.Now()):
			case why == "" && d.Now().Sub(t.Issued) < lateness: // they are made after the token
			case !t.Passwords.Made:
				p.none = append(p.none, name)
			case !t.Passwords.Current:
				p.stale = append(p.stale, name)
			case t.Passwords.Renews == nil || d.Now().Sub(*t.Passwords.Renews) > lateness:
				p.overdue = append(p.overdue, name)
			default:
				p.fresh++
			}
		}
	}
	return p
}

// checkRegistry looks at the program that makes passwords, and its rights in the namespaces whose Secrets list registries.
func (d *Examination) checkRegistry(ctx context.Context, found *Diagnosis, workload *cluster.API, namespaces map[string]bool) {
	const install = "install it, or see its log: docs/howto/private-images.md#where-kubelets-cannot-be-configured"
	var lease coordinationv1.Lease
	err := workload.Get(ctx, &lease, cluster.Place{API: "/apis/coordination.k8s.io/v1", Namespace: rights.SystemNamespace, Resource: "leases", Name: rights.RegistryAccount})
	switch {
	case skipped(found, pullSecrets, "get leases in namespace "+rights.SystemNamespace, err):
	case apierrors.IsNotFound(err), err == nil && (!held(&lease) || d.vacant(workload, &lease)):
		found.add(pullSecrets, Fail, install, "Secrets list registries, and no credence-registry holds the Lease %s/%s: no passwords are made or renewed", rights.SystemNamespace, rights.RegistryAccount)
	case err != nil:
		found.add(pullSecrets, Fail, "", "read the Lease of credence-registry: %v", err)
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		bound := false
		err := cluster.Each(ctx, workload, cluster.Listing{API: rbacAPI, Namespace: namespace, Resource: "rolebindings", Fields: "metadata.name=" + rights.RegistrySecrets}, func(b *rbacv1.RoleBinding) {
			bound = rights.Gives(b, rights.OfRegistry(namespace))
		})
		switch {
		case skipped(found, pullSecrets, "list rolebindings in namespace "+namespace, err):
			return
		case err != nil:
			found.add(pullSecrets, Fail, "", "list rolebindings in namespace %s: %v", namespace, err)
		case !bound:
			found.add(pullSecrets, Fail, "a cluster admin names it in registry.namespaces of the chart, or runs: kubectl create rolebinding "+rights.RegistrySecrets+" -n "+namespace+
				" --clusterrole="+rights.RegistrySecrets+" --serviceaccount="+rights.SystemNamespace+":"+rights.RegistryAccount,
				"Secrets of namespace %s list registries, and it has no RoleBinding %s, by which credence-registry has them", namespace, rights.RegistrySecrets)
		}
	}
}
