package cli

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
	"github.com/credence-id/credence/internal/relyingparty/conformance"
	"github.com/credence-id/credence/internal/targets"
)

// checkIdentities reads the identities and where they are, and holds each to what its target system takes.
func (d *doctor) checkIdentities(ctx context.Context, found *diagnosis, both clusters, where selection) *inventory {
	home, names := where.home, where.names
	known, err := both.survey(ctx, where.namespace, names, home)
	if apierrors.IsForbidden(err) && where.namespace == "" {
		if known, err = both.survey(ctx, home, names, home); err == nil {
			known.note(fmt.Sprintf("only the identities of namespace %s were looked at: you may not list those of all namespaces", home))
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		found.skip("identities", "you may not read them: %v", err)
		return nil
	case apierrors.IsNotFound(err) && len(names) > 0:
		found.add("identities", verdictFail, "see which there are, if you may list them: kubectl get workloadidentities -n "+home, "WorkloadIdentity %s/%s does not exist", home, names[0])
		return nil
	case err != nil:
		found.add("identities", verdictFail, "see whether Credence's API is available", "%v", err)
		return nil
	}
	for _, note := range known.notes {
		found.skip("rights", "%s", note)
	}
	fit := 0
	for _, identity := range known.identities {
		if identity.Missing {
			continue
		}
		before := len(found.findings)
		if checkLimits(found, identity); len(found.findings) == before {
			fit++
		}
	}
	found.pass("identities", "%s what the target system takes", plural(fit, "is", "are"))
	return known
}

// checkLimits holds an identity to its target system. One that was written before a limit was known need not keep it.
func checkLimits(found *diagnosis, identity *deliveredIdentity) {
	name := identity.Namespace + "/" + identity.Name
	const recreate = "its subject never changes: create an identity with a shorter name, or in a namespace with one"
	adapter := targets.For(identity.Type)
	limits := adapter.Limits()
	if limits.Subject > 0 && len(identity.Subject) > limits.Subject {
		found.add("identities", verdictFail, recreate, "%s: its subject is %d bytes long, %s takes at most %d", name, len(identity.Subject), identity.Type, limits.Subject)
	}
	if limits.Audiences > 0 && len(identity.Audiences) > limits.Audiences {
		found.add("identities", verdictFail, "take some out of spec.audiences", "%s has %d audiences, %s takes at most %d", name, len(identity.Audiences), identity.Type, limits.Audiences)
	}
	for _, audience := range identity.Audiences {
		if n := utf8.RuneCountInString(audience); limits.Audience > 0 && n > limits.Audience {
			found.add("identities", verdictFail, "choose a shorter one", "%s: an audience is %d characters long, %s takes at most %d", name, n, identity.Type, limits.Audience)
		}
	}
	config, problems := adapter.Parse(identity.config, field.NewPath("spec", "targetSystem", "providerConfig"))
	if len(problems) > 0 {
		found.add("identities", verdictFail, fmt.Sprintf("a user who may update identities there runs: kubectl edit workloadidentity %s -n %s", identity.Name, identity.Namespace), "%s: %v", name, problems.ToAggregate())
		return
	}
	if expected := config.Audiences(); len(expected) > 0 && !slices.ContainsFunc(expected, func(a string) bool { return slices.Contains(identity.Audiences, a) }) {
		found.add("identities", verdictWarn, "change spec.audiences, unless the target system was set up otherwise", "%s: none of its audiences is what %s expects, %s", name, identity.Type, quoted(expected...))
	}
}

// checkIssuers looks at the issuer as relying parties do.
func (d *doctor) checkIssuers(ctx context.Context, found *diagnosis, known *inventory, ring *v1alpha1.KeyRing, client *http.Client, authorities *x509.CertPool) {
	var issuers []string
	if known != nil {
		for _, identity := range known.identities {
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
		report := conformance.Run(ctx, conformance.Options{Issuer: issuer, Client: client, Clock: d.now})
		if !d.ownAuthorities && authorities != nil && foreignAuthority(report) {
			found.add("issuer", verdictWarn, "clouds trust public authorities alone: give it a certificate of one, or give clouds its keys by hand (docs/howto/static-hosting.md)",
				"%s: its certificate is of an authority that this machine does not know, and that the kubeconfig has", issuer)
			report = conformance.Run(ctx, conformance.Options{Issuer: issuer, Client: trusting(authorities), Clock: d.now})
		}
		for _, check := range report.Checks {
			for _, finding := range check.Findings {
				if check.Verdict == conformance.Warn || check.Verdict == conformance.Fail {
					found.add("issuer", string(check.Verdict), "", "%s: %s: %s", check.Name, finding.Diagnosis, finding.Detail)
				}
			}
		}
		if report.Count(conformance.Fail) == 0 {
			found.pass("issuer", "%s of %s", plural(report.Count(conformance.Pass), "check", "checks"), issuer)
		}
		d.checkPublicName(ctx, found, issuer)
	}
}

func foreignAuthority(report conformance.Report) bool {
	return slices.ContainsFunc(report.Checks, func(check conformance.Check) bool {
		return slices.ContainsFunc(check.Findings, func(f conformance.Finding) bool { return f.Diagnosis == "unknown-authority" })
	})
}

// checkPublicName sees whether a public name leads to an address that only this network knows.
func (d *doctor) checkPublicName(ctx context.Context, found *diagnosis, issuer string) {
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
	addresses, err := d.resolve(ctx, host)
	if err != nil {
		found.add("issuer-address", verdictWarn, hint, "%s can't be looked up from here: %v", host, err)
		return
	}
	inside := slices.IndexFunc(addresses, func(ip net.IP) bool { return !ip.IsGlobalUnicast() || ip.IsPrivate() })
	if inside >= 0 {
		found.add("issuer-address", verdictWarn, hint, "%s is %s here, which is not reachable from the internet", host, addresses[inside])
		return
	}
	found.pass("issuer-address", "%s is public", host)
}

// checkTokens looks at every Secret that carries a token.
func (d *doctor) checkTokens(found *diagnosis, known *inventory) {
	var all, expired, overdue, empty, absent, unkept, orphaned, broken, foreign, unnamed, released []string
	for _, identity := range known.identities {
		for _, t := range identity.Deliveries {
			name := t.Namespace + "/" + t.Secret
			all = append(all, name)
			switch {
			case t.Problem != "":
				broken = append(broken, name+": "+t.Problem)
			case identity.Missing || t.OrphanedSince != nil:
				orphaned = append(orphaned, name)
			case t.Missing:
				absent = append(absent, name+d.why(identity, t))
			case t.Expires == nil:
				empty = append(empty, name+d.why(identity, t))
			case !t.Expires.After(d.now()):
				expired = append(expired, name+" ("+d.ago(*t.Expires)+")"+d.why(identity, t))
			case t.Renews != nil && d.now().Sub(*t.Renews) > lateness:
				overdue = append(overdue, name+" ("+d.ago(*t.Renews)+")"+d.why(identity, t))
			case t.Renews == nil:
				unkept = append(unkept, name)
			}
			if t.RequestedBy == "" && t.ServiceAccount == "" && !t.Missing && t.Problem == "" {
				unnamed = append(unnamed, name)
			}
			if t.ReleasedSince != nil {
				released = append(released, name+" (since "+d.ago(*t.ReleasedSince)+")")
			}
			if t.issuer != "" && identity.Issuer != "" && t.issuer != identity.Issuer {
				foreign = append(foreign, name)
			}
		}
	}
	const agent = "see whether credence-server agent runs, and its Events: kubectl get events -A --field-selector type=Warning"
	report := func(list []string, verdict, hint, what string) {
		if len(list) > 0 {
			found.add("tokens", verdict, hint, "%d of %d %s: %s", len(list), len(all), what, some(list))
		}
	}
	report(broken, verdictFail, "correct the annotations of the Secret", "can't be understood")
	report(expired, verdictFail, agent, "have expired")
	report(overdue, verdictFail, agent, "are overdue for renewal")
	report(empty, verdictFail, agent, "have no token")
	report(absent, verdictFail, agent, "do not exist, though service accounts need them")
	report(unkept, verdictWarn, agent, "have a token and no time of its renewal, as if no agent kept them")
	report(foreign, verdictFail, "a user who may update Secrets there renews it: kubectl annotate secret NAME -n NAMESPACE gardener.cloud/operation=renew-workload-identity-token", "are of another issuer than the identity's")
	report(orphaned, verdictWarn, "create the identity anew, and its trust as well, or delete the Secret", "are of identities that do not exist any more")
	report(unnamed, verdictWarn, "have a user who may use the identity and update the Secret take it over: kubectl annotate secret NAME -n NAMESPACE --overwrite "+authenticationv1alpha1.AnnotationRequester+"=me",
		"do not hold the user who labelled them, so that no right is reviewed when they are renewed")
	report(released, verdictWarn, "name the identity again, or let these pods end: new ones do not get it; to stop delivery at once, take the right to use it away from the service account",
		"are of identities that their service account does not name any more, and stay for the pods that mount them")
	if known.waitingCount > 0 {
		found.add("pods", verdictWarn, agent, "%s until a token exists: %s", plural(known.waitingCount, "pod waits", "pods wait"), some(known.waiting))
	}
	if !known.seen {
		found.skip("tokens", "the Secrets that carry them could not be looked at")
		return
	}
	if bad := len(broken) + len(expired) + len(overdue) + len(empty) + len(absent) + len(unkept) + len(orphaned); bad < len(all) || len(all) == 0 {
		found.pass("tokens", "%s fresh", plural(len(all)-bad, "Secret is", "Secrets are"))
	}
}

func (d *doctor) ago(at time.Time) string { return age(&metav1.Time{Time: at}, d.now()) }

// why is the newest failure of a token or of its identity, if there is one.
func (d *doctor) why(identity *deliveredIdentity, t *delivery) string {
	failure := t.failure(identity)
	if failure == nil {
		return ""
	}
	return fmt.Sprintf(", %s: %s", failure.Reason, failure.Message)
}
