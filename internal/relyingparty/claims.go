package relyingparty

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// wants is what the claims of a token are held against.
type wants struct {
	issuer   identity.Issuer
	audience string // empty: any
	now      time.Time
	leeway   time.Duration
}

// checkClaims returns everything that is wrong with the claims of a token (RFC 7519, section 4.1).
func checkClaims(token Inspection, want wants) []Finding {
	var findings []Finding
	if token.Issuer != string(want.issuer) {
		findings = append(findings, Finding{
			Reason: WrongIssuer,
			Detail: fmt.Sprintf("the token is of issuer %q, wanted is %q (issuers are compared byte by byte)", token.Issuer, want.issuer),
			Has:    []string{token.Issuer}, Wanted: []string{string(want.issuer)},
		})
	}
	if want.audience != "" && !slices.Contains(token.Audience, want.audience) {
		findings = append(findings, Finding{
			Reason: WrongAudience,
			Detail: fmt.Sprintf("the token is for %s, wanted is %q", list("audience", token.Audience), want.audience),
			Has:    token.Audience, Wanted: []string{want.audience},
		})
	}
	return append(findings, checkTimes(token, want)...)
}

func checkTimes(token Inspection, want wants) []Finding {
	var findings []Finding
	now := want.now.UTC().Format(time.RFC3339)
	switch expiry := token.Expiry.Format(time.RFC3339); {
	case token.Expiry.IsZero():
		findings = append(findings, Finding{Reason: MissingExpiry, Detail: "the token has no exp claim, so it would be valid for ever"})
	// "On or after" exp the token must not be accepted (RFC 7519, section 4.1.4).
	case !want.now.Before(token.Expiry.Add(want.leeway)):
		findings = append(findings, Finding{
			Reason: Expired,
			Detail: fmt.Sprintf("the token expired at %s, it is now %s", expiry, now),
			Has:    []string{expiry}, Wanted: []string{now},
		})
	}
	if want.now.Add(want.leeway).Before(token.NotBefore) {
		start := token.NotBefore.Format(time.RFC3339)
		findings = append(findings, Finding{
			Reason: NotYetValid,
			Detail: fmt.Sprintf("the token is valid from %s on, it is now %s", start, now),
			Has:    []string{start}, Wanted: []string{now},
		})
	}
	return findings
}

// list words quoted values for a sentence, such as `audiences "a", "b"`.
func list(noun string, values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("%q", value)
	}
	switch len(values) {
	case 0:
		return "no " + noun
	case 1:
		return noun + " " + quoted[0]
	default:
		return noun + "s " + strings.Join(quoted, ", ")
	}
}
