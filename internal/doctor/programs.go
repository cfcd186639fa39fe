package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
)

type program struct {
	name string
	// stops describes what does not work without it.
	stops string
	// unseen is what else shows whether it runs, where it has neither Deployment nor Lease; empty: another check, or it is not installed.
	unseen string
}

// programs are the parts of an installation that run: each may have a Deployment credence-NAME, and a Lease of that name, by which replicas take turns.
var programs = []program{
	{name: "webhook", stops: "no pod is created in namespaces with the label"},
	{name: "agent", stops: "no token is renewed", unseen: "the token Secrets"},
	{name: "apiserver", stops: "no token is issued, and no namespace can be deleted"},
	{name: "controller", stops: "no key rotates"},
	{name: "discovery", stops: "relying parties that fetch the keys refuse all tokens"},
	{name: "binder", stops: "no token is delivered in namespaces that get the label now"},
	{name: "profiles", stops: "the status of profiles is old, and no pod is restarted"},
	{name: "certificates", stops: "no certificate of the installation is renewed"},
	{name: "registry", stops: "no password of a registry is renewed"},
}

// checkPrograms sees for each program of a cluster whether replicas are ready, and whether one of them works. A program that hangs, or may not write
// its Lease, is seen by the Lease within a minute.
func (d *Examination) checkPrograms(ctx context.Context, found *Diagnosis, prefix string, from *cluster.API) {
	deployments, leases := map[string]appsv1.Deployment{}, map[string]*coordinationv1.Lease{}
	where := cluster.Listing{API: "/apis/coordination.k8s.io/v1", Namespace: rights.SystemNamespace, Resource: "leases"}
	err := cluster.Each(ctx, from, where, func(l *coordinationv1.Lease) {
		if held(l) {
			leases[l.Name] = l
		}
	})
	if err == nil {
		where.API, where.Resource = "/apis/apps/v1", "deployments"
		err = cluster.Each(ctx, from, where, func(o *appsv1.Deployment) {
			if slices.ContainsFunc(programs, func(p program) bool { return o.Name == "credence-"+p.name }) {
				deployments[o.Name] = *o
			}
		})
	}
	if err != nil && !skipped(found, prefix+"programs", "list "+where.Resource+" in namespace "+rights.SystemNamespace, err) {
		found.add(prefix+"programs", Fail, "", "list %s in namespace %s: %v", where.Resource, rights.SystemNamespace, err)
	}
	for _, p := range programs {
		check, name := prefix+p.name, "credence-"+p.name
		deployment, deployed := deployments[name]
		lease := leases[name]
		if !deployed && len(deployments) > 0 {
			continue // not installed; there may be a Lease of before
		}
		hint := fmt.Sprintf("%s until it works: see its pods and their log (kubectl get pods -n %s), or its process", p.stops, rights.SystemNamespace)
		wanted, ready := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.ReadyReplicas
		switch {
		case deployed && ready == 0:
			found.add(check, Fail, hint, "none of %d replicas of Deployment %s/%s is ready%s", wanted, rights.SystemNamespace, name, since(deployment.Status))
		case lease != nil && d.vacant(from, lease):
			found.add(check, Fail, hint, "no replica holds the Lease %s/%s, last renewed %s", rights.SystemNamespace, name, lease.Spec.RenewTime.UTC().Format(time.RFC3339))
		case deployed && ready < wanted:
			found.add(check, Warn, hint, "%d of %d replicas of Deployment %s/%s are ready", ready, wanted, rights.SystemNamespace, name)
		case lease != nil && *lease.Spec.HolderIdentity == "":
			found.add(check, Warn, hint, "its replicas change turns: none holds the Lease %s/%s at the moment", rights.SystemNamespace, name)
		case lease != nil:
			found.pass(check, "%s runs", *lease.Spec.HolderIdentity)
		case deployed:
			found.pass(check, "%d of %d replicas are ready", ready, wanted)
		case p.unseen != "" && err == nil:
			found.skip(check, "there is no Lease %s/%s: whether it works is seen by %s", rights.SystemNamespace, name, p.unseen)
		}
	}
}

// since words since when a Deployment has too few replicas; empty where its status does not have that, as for one that was scaled to 0.
func since(status appsv1.DeploymentStatus) string {
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status != corev1.ConditionTrue {
			return ", since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// held reports whether a replica has held a Lease.
func held(l *coordinationv1.Lease) bool {
	return l.Spec.HolderIdentity != nil && l.Spec.RenewTime != nil && l.Spec.LeaseDurationSeconds != nil
}

// vacant reports whether no replica has renewed a Lease within its duration, by the clock of the cluster. Clocks of its nodes may differ by as much as
// is not reported of them. A replica that ends
// gives its Lease up, and another one takes it within seconds.
func (d *Examination) vacant(from *cluster.API, lease *coordinationv1.Lease) bool {
	s := lease.Spec
	return d.Now().Add(-d.reached[from].ahead).Sub(s.RenewTime.Time) > time.Duration(*s.LeaseDurationSeconds)*time.Second+warnSkew
}
