package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/relyingparty/conformance"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/wording"
)

// checkIdentities reads the identities and where they are, and holds each to what its target system takes.
func (d *Examination) checkIdentities(ctx context.Context, found *Diagnosis, both cluster.Both, where Selection) *inventory.Report {
	home, names := where.Home, where.Names
	known, err := inventory.Read(ctx, both, where.Namespace, names, "", home)
	if apierrors.IsForbidden(err) && where.Namespace == "" {
		if known, err = inventory.Read(ctx, both, home, names, "", home); err == nil {
			known.Note(fmt.Sprintf("only the identities of namespace %s were looked at: you may not list those of all namespaces", home))
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		found.skip("identities", "you may not read them: %v", err)
		return nil
	case apierrors.IsNotFound(err) && len(names) > 0:
		found.add("identities", Fail, "see which there are, if you may list them: kubectl get workloadidentities -n "+home, "WorkloadIdentity %s/%s does not exist", home, names[0])
		return nil
	case err != nil:
		found.add("identities", Fail, "see whether Credence's API is available", "%v", err)
		return nil
	}
	if where.Namespace == "" {
		known.Note(known.Narrow)
	}
	for _, note := range known.Notes {
		found.skip("rights", "%s", note)
	}
	fit := 0
	for _, identity := range known.Identities {
		if identity.Missing {
			continue
		}
		before := len(found.Findings)
		if checkLimits(found, identity); len(found.Findings) == before {
			fit++
		}
	}
	found.pass("identities", "%s what the target system takes", wording.Plural(fit, "is", "are"))
	return known
}

// checkLimits holds an identity to its target system. One that was written before a limit was known need not keep it.
func checkLimits(found *Diagnosis, identity *inventory.Identity) {
	name := identity.Namespace + "/" + identity.Name
	const recreate = "its subject never changes: create an identity with a shorter name, or in a namespace with one"
	adapter := targets.For(identity.Type)
	limits := adapter.Limits()
	if limits.Subject > 0 && len(identity.Subject) > limits.Subject {
		found.add("identities", Fail, recreate, "%s: its subject is %d bytes long, %s takes at most %d", name, len(identity.Subject), identity.Type, limits.Subject)
	}
	if limits.Audiences > 0 && len(identity.Audiences) > limits.Audiences {
		found.add("identities", Fail, "take some out of spec.audiences", "%s has %d audiences, %s takes at most %d", name, len(identity.Audiences), identity.Type, limits.Audiences)
	}
	for _, audience := range identity.Audiences {
		if n := utf8.RuneCountInString(audience); limits.Audience > 0 && n > limits.Audience {
			found.add("identities", Fail, "choose a shorter one", "%s: an audience is %d characters long, %s takes at most %d", name, n, identity.Type, limits.Audience)
		}
	}
	config, problems := adapter.Parse(identity.Config, field.NewPath("spec", "targetSystem", "providerConfig"))
	if len(problems) > 0 {
		verdict := Fail
		if len(identity.Config) == 0 {
			verdict = Warn // the API takes it with a warning, and tokens are issued
		}
		found.add("identities", verdict, fmt.Sprintf("a user who may update identities there runs: kubectl edit workloadidentity %s -n %s", identity.Name, identity.Namespace), "%s: %v", name, problems.ToAggregate())
		return
	}
	if expected := config.Audiences(); len(expected) > 0 && !slices.ContainsFunc(expected, func(a string) bool { return slices.Contains(identity.Audiences, a) }) {
		found.add("identities", Warn, "change spec.audiences, unless the target system was set up otherwise", "%s: none of its audiences is what %s expects, %s", name, identity.Type, wording.Quoted(expected...))
	}
}

// checkIssuers looks at the issuer as relying parties do.
func (d *Examination) checkIssuers(ctx context.Context, found *Diagnosis, known *inventory.Report, ring *v1alpha1.KeyRing, authorities *x509.CertPool) {
	var issuers []string
	if known != nil {
		for _, identity := range known.Identities {
			if identity.Issuer != "" && !slices.Contains(issuers, identity.Issuer) {
				issuers = append(issuers, identity.Issuer)
			}
		}
	}
	if len(issuers) == 0 && ring != nil && ring.Status.Issuer != "" {
		issuers = []string{ring.Status.Issuer}
	}
	if len(issuers) == 0 {
		found.skip("issuer", "it is not known: no identity and no KeyRing that you may read names it")
		return
	}
	// There is one for life; more than a few would be a mistake elsewhere.
	for _, issuer := range issuers[:min(len(issuers), 3)] {
		client := d.Client
		report := conformance.Run(ctx, conformance.Options{Issuer: issuer, Client: client, Clock: d.Now})
		if !d.OwnAuthorities && authorities != nil && foreignAuthority(report) {
			found.add("issuer", Warn, "clouds trust public authorities alone: give it a certificate of one, or give clouds its keys by hand (docs/howto/static-hosting.md)",
				"%s: its certificate is of an authority that this machine does not know, and that the kubeconfig has", issuer)
			client = relyingparty.Trusting(authorities)
			report = conformance.Run(ctx, conformance.Options{Issuer: issuer, Client: client, Clock: d.Now})
		}
		for _, check := range report.Checks {
			for _, finding := range check.Findings {
				if check.Verdict == conformance.Warn || check.Verdict == conformance.Fail {
					found.add("issuer", string(check.Verdict), "", "%s: %s: %s", check.Name, finding.Diagnosis, finding.Detail)
				}
			}
		}
		if report.Count(conformance.Fail) == 0 {
			found.pass("issuer", "%s of %s", wording.Plural(report.Count(conformance.Pass), "check", "checks"), issuer)
		}
		d.checkRevoked(ctx, found, identity.Issuer(issuer), client, ring)
		d.checkPublicName(ctx, found, issuer)
	}
}

// checkRevoked sees whether relying parties are still shown a revoked key. A CDN, or a copy, can be older than the published documents,
// which the KeyRing's condition Withdrawn is about.
func (d *Examination) checkRevoked(ctx context.Context, found *Diagnosis, issuer identity.Issuer, client *http.Client, ring *v1alpha1.KeyRing) {
	if ring == nil || len(ring.Status.Revoked) == 0 {
		return
	}
	shown, err := d.Shown(ctx, issuer, client)
	if err != nil {
		found.skip("issuer", "whether %s still shows a revoked key is not known: %v", issuer, err)
		return
	}
	for _, key := range ring.Status.Revoked {
		if slices.Contains(shown, identity.KeyID(key.ID)) {
			found.add("issuer", Fail, "wait until caches have ended (--max-age, an hour by default); purge the cache of the CDN, upload the documents again, or see the log of credence-discovery: docs/reference/alerts.md#credencerevokedkeypublished",
				"%s still shows the revoked key %s: relying parties accept what is signed with it", issuer, key.ID)
		}
	}
}

func foreignAuthority(report conformance.Report) bool {
	return slices.ContainsFunc(report.Checks, func(check conformance.Check) bool {
		return slices.ContainsFunc(check.Findings, func(f conformance.Finding) bool { return f.Diagnosis == "unknown-authority" })
	})
}

// checkPublicName sees whether a public name leads to an address that only this network knows.
func (d *Examination) checkPublicName(ctx context.Context, found *Diagnosis, issuer string) {
	address, err := url.Parse(issuer)
	if err != nil {
		return // the checks of the issuer have reported it
	}
	host := address.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return // the same
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	const hint = "clouds look the name up in the public DNS: publish it there, with a public address"
	addresses, err := d.Resolve(ctx, host)
	if err != nil {
		found.add("issuer-address", Warn, hint, "%s can't be looked up from here: %v", host, err)
		return
	}
	inside := slices.IndexFunc(addresses, func(ip net.IP) bool { return !ip.IsGlobalUnicast() || ip.IsPrivate() })
	if inside >= 0 {
		found.add("issuer-address", Warn, hint, "%s is %s here, which is not reachable from the internet", host, addresses[inside])
		return
	}
	found.pass("issuer-address", "%s is public", host)
}

// checkTokens looks at every Secret that carries a token.
func (d *Examination) checkTokens(found *Diagnosis, known *inventory.Report) {
	var all, expired, overdue, empty, absent, unkept, failing, orphaned, broken, foreign, unnamed, released []string
	for _, identity := range known.Identities {
		for _, t := range identity.Deliveries {
			name := t.Namespace + "/" + t.Secret
			all = append(all, name)
			switch {
			case t.Problem != "":
				broken = append(broken, name+": "+t.Problem)
			case identity.Gone(), identity.Missing && t.Failure(identity) == nil, t.OrphanedSince != nil:
				orphaned = append(orphaned, name)
			case t.Missing:
				absent = append(absent, name+d.why(identity, t))
			case t.Expires == nil:
				empty = append(empty, name+d.why(identity, t))
			case !t.Expires.After(d.Now()):
				expired = append(expired, name+" ("+d.ago(*t.Expires)+")"+d.why(identity, t))
			case t.Renews != nil && d.Now().Sub(*t.Renews) > lateness:
				overdue = append(overdue, name+" ("+d.ago(*t.Renews)+")"+d.why(identity, t))
			case t.Renews == nil:
				unkept = append(unkept, name)
			case t.Failure(identity) != nil:
				failing = append(failing, name+d.why(identity, t))
			}
			if t.RequestedBy == "" && t.ServiceAccount == "" && !t.Missing && t.Problem == "" {
				unnamed = append(unnamed, name)
			}
			if t.ReleasedSince != nil {
				released = append(released, name+" (since "+d.ago(*t.ReleasedSince)+")")
			}
			if t.Issuer != "" && identity.Issuer != "" && t.Issuer != identity.Issuer {
				foreign = append(foreign, name)
			}
		}
	}
	const agent = "see whether credence-server agent runs, and its Events: kubectl get events -A --field-selector type=Warning"
	report := func(list []string, verdict, hint, what string) {
		if len(list) > 0 {
			found.add("tokens", verdict, hint, "%d of %d %s: %s", len(list), len(all), what, wording.Some(list))
		}
	}
	report(broken, Fail, "correct the annotations of the Secret", "can't be understood")
	report(expired, Fail, agent, "have expired")
	report(overdue, Fail, agent, "are overdue for renewal")
	report(empty, Fail, agent, "have no token")
	report(absent, Fail, agent, "do not exist, though service accounts need them")
	report(unkept, Warn, agent, "have a token and no time of its renewal, as if no agent kept them")
	report(failing, Warn, agent, "have a token, and got no new one since")
	report(foreign, Fail, "a user who may update Secrets there renews it: kubectl annotate secret NAME -n NAMESPACE gardener.cloud/operation=renew-workload-identity-token", "are of another issuer than the identity's")
	report(orphaned, Warn, "create the identity anew, and its trust as well, or delete the Secret; if identities are in another cluster, give its kubeconfig by --identity-kubeconfig", "are of identities that do not exist any more")
	report(unnamed, Warn, "have a user who may use the identity and update the Secret take it over: kubectl annotate secret NAME -n NAMESPACE --overwrite "+authenticationv1alpha1.AnnotationRequester+"=me",
		"do not hold the user who labelled them, so that no right is reviewed when they are renewed")
	report(released, Warn, "name the identity again, or let these pods end: new ones do not get it; to stop delivery at once, take the right to use it away from the service account",
		"are of identities that their service account does not name any more, and stay for the pods that mount them")
	if known.WaitingCount > 0 {
		found.add("pods", Warn, agent, "%s until a token exists: %s", wording.Plural(known.WaitingCount, "pod waits", "pods wait"), wording.Some(known.Waiting))
	}
	if !known.Seen {
		found.skip("tokens", "the Secrets that carry them could not be looked at")
		return
	}
	if bad := len(broken) + len(expired) + len(overdue) + len(empty) + len(absent) + len(unkept) + len(orphaned); bad < len(all) || len(all) == 0 {
		found.pass("tokens", "%s fresh", wording.Plural(len(all)-bad, "Secret is", "Secrets are"))
	}
}

func (d *Examination) ago(at time.Time) string { return wording.Age(&metav1.Time{Time: at}, d.Now()) }

// why is the newest failure of a token or of its identity, if there is one.
func (d *Examination) why(identity *inventory.Identity, t *inventory.Delivery) string {
	failure := t.Failure(identity)
	if failure == nil {
		return ""
	}
	return fmt.Sprintf(", %s: %s", failure.Reason, failure.Message)
}
