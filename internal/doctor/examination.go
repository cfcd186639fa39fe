package doctor

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/inventory"
)

// Examination is what the checks need besides the clusters.
type Examination struct {
	Now func() time.Time
	// Resolve looks up the addresses of a host.
	Resolve func(ctx context.Context, host string) ([]net.IP, error)
	// Client fetches the documents of the issuer. OwnAuthorities is true if the user named the authorities that it trusts.
	Client         *http.Client
	OwnAuthorities bool
	// Shown fetches the IDs of the keys that an issuer shows to relying parties.
	Shown func(ctx context.Context, issuer identity.Issuer, client *http.Client) ([]identity.KeyID, error)
	// Manifests are all manifests of this version.
	Manifests []Manifest

	// reached has what is known of each cluster that was reached.
	reached map[*cluster.API]reached
}

// reached is what the version request to a cluster has shown.
type reached struct {
	ahead time.Duration // of the clock here before the cluster's clock
	minor int           // of Kubernetes 1; 0: not known
}

// Selection is where the doctor looks.
type Selection struct {
	Home      string // the namespace of the kubeconfig, or of -n
	Namespace string // the only one to look at; empty: all
	Names     []string
}

// labeled returns a namespace whose pods pass the webhook, the nearest one; empty: none.
func (s Selection) labeled(enabled map[string]bool) string {
	all := []string{s.Namespace}
	if s.Namespace == "" {
		all = append([]string{s.Home}, slices.Sorted(maps.Keys(enabled))...)
	}
	at := slices.IndexFunc(all, func(name string) bool { return enabled[name] && !rights.Reserved(name) })
	if at < 0 {
		return ""
	}
	return all[at]
}

// Examine makes the checks in the order of a token's way. Checks that depend on a failed one are skipped.
func (d *Examination) Examine(ctx context.Context, both cluster.Both, where Selection) *Diagnosis {
	found := &Diagnosis{}
	if !d.checkReach(ctx, found, "api", both.Workload) {
		return found
	}
	if both.Identity != both.Workload && !d.checkReach(ctx, found, "identity-api", both.Identity) {
		return found
	}
	missing := checkAPIServices(ctx, found, both.Identity)
	webhook := checkWebhooks(ctx, found, both.Workload)
	d.checkPrograms(ctx, found, "", both.Workload)
	if both.Identity != both.Workload {
		d.checkPrograms(ctx, found, "identity-", both.Identity)
	}
	enabled, mirrored := d.checkAnnotations(ctx, found, both.Workload, where.Namespace, where.Home)
	if namespace := where.labeled(enabled); webhook && namespace != "" {
		checkAdmission(ctx, found, both.Workload, namespace)
	}
	checkAgentRights(ctx, found, both, where.Namespace, enabled)
	if where.Namespace == "" {
		d.checkInstallation(ctx, found, "installation", both.Workload)
		if both.Identity != both.Workload {
			d.checkInstallation(ctx, found, "identity-installation", both.Identity)
		}
		checkBackup(ctx, found, both.Identity)
		checkOperators(ctx, found, both.Workload)
		d.checkPodsPort(ctx, found, both.Workload)
		d.checkDriver(ctx, found, both.Workload)
	}
	checkProfiles(ctx, found, both.Workload, where.Namespace, enabled)
	checkStaticPods(ctx, found, both.Workload, slices.Sorted(maps.Keys(mirrored)))
	var ring *identityv1alpha1.KeyRing
	var known *inventory.Report
	const unavailable = "nothing can be checked while %s is not available"
	if group := identityv1alpha1.SchemeGroupVersion; slices.Contains(missing, group) {
		found.skip("keys", unavailable, group)
	} else {
		ring = d.checkKeys(ctx, found, both.Identity)
		if where.Namespace == "" {
			d.checkClusters(ctx, found, both.Identity)
			checkContextKinds(ctx, found, both.Identity)
		}
	}
	if group := v1alpha1.SchemeGroupVersion; slices.Contains(missing, group) {
		found.skip("identities", unavailable, group)
		found.skip("tokens", unavailable, group)
	} else {
		known = d.checkIdentities(ctx, found, both, where)
		checkReferences(ctx, found, both, where.Namespace)
	}
	d.checkIssuers(ctx, found, known, ring, both.Identity.Authorities)
	checkHost(ctx, found, both.Identity, ring)
	if known != nil {
		d.checkTokens(found, known)
		d.checkPullSecrets(ctx, found, both.Workload, known)
	}
	return found
}
