package conformance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
)

// clouds are those of a limit, the most generous first.
func clouds[T cmp.Ordered](limit func(target.Party) T) []target.Party {
	var none T
	limited := slices.DeleteFunc(targets.Parties(), func(p target.Party) bool { return limit(p) == none })
	slices.SortStableFunc(limited, func(a, b target.Party) int { return cmp.Compare(limit(b), limit(a)) })
	return limited
}

func tokenAudience(e *evidence, o *outcome) {
	audience := e.token.claims.Audience
	if len(audience) == 0 {
		o.fail("missing", "the token has no aud: clouds refuse it, and a thief could use it anywhere")
	}
	for _, one := range audience {
		for _, cloud := range clouds(func(p target.Party) int { return p.Audience }) {
			if len(one) > cloud.Audience {
				o.warn("long", "an audience of the token has %d characters: %s keeps %d", len(one), cloud.Name, cloud.Audience)
			}
		}
	}
	if len(audience) > 0 {
		e.token.report(o, relyingparty.WrongAudience, "other-audience", "%s (audiences are compared byte by byte)")
	}
	if e.token.judged.Audience == "" {
		o.pass("%s (any is accepted here)", words(audience))
		return
	}
	o.pass("%s, wanted is %.200q", words(audience), e.token.judged.Audience)
}

func tokenSubject(e *evidence, o *outcome) {
	subject := e.token.claims.Subject
	size := len(subject)
	if size == 0 {
		o.fail("missing", "the token has no sub: clouds refuse it, and grants have no subject to name")
		return
	}
	for _, cloud := range clouds(func(p target.Party) int { return p.MaxSubject }) {
		switch {
		case cloud.MinSubject > 0 && (size < cloud.MinSubject || size > cloud.MaxSubject):
			o.warn("length-for-"+cloud.Code, "the sub of the token has %d bytes: %s takes %d to %d", size, cloud.Name, cloud.MinSubject, cloud.MaxSubject)
		case size > cloud.MaxSubject:
			o.warn("long-for-"+cloud.Code, "the sub of the token has %d bytes: %s takes %d at most; choose shorter names, or map another claim", size, cloud.Name, cloud.MaxSubject)
		}
	}
	if strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r > '~' }) {
		o.warn("characters", "the sub of the token has a space or a character outside printable ASCII: grants that name it may not match")
	}
	o.pass("%d bytes", size)
}

func tokenTimes(e *evidence, o *outcome) {
	claims := e.token.claims
	e.token.report(o, relyingparty.MissingExpiry, "missing-exp", "%s: every cloud refuses it")
	e.token.report(o, relyingparty.Expired, "expired", "%s")
	e.token.report(o, relyingparty.NotYetValid, "not-yet-valid", "%s: check the clocks")
	switch {
	case claims.IssuedAt.IsZero():
		o.fail("missing-iat", "the token has no iat: AWS, Google and Alibaba refuse it")
	case claims.IssuedAt.After(e.now):
		o.fail("issued-in-future", "the token was issued at %s by its iat, and it is now %s: check the clocks", claims.IssuedAt.Format(time.RFC3339), e.now.UTC().Format(time.RFC3339))
	case !claims.Expiry.IsZero() && !claims.Expiry.After(claims.IssuedAt):
		o.fail("exp-before-iat", "the token expires at %s, before it was issued (%s)", claims.Expiry.Format(time.RFC3339), claims.IssuedAt.Format(time.RFC3339))
	}
	o.pass("valid now, until %s", claims.Expiry.Format(time.RFC3339))
}

func tokenLifetime(e *evidence, o *outcome) {
	lifetime := e.token.claims.Expiry.Sub(e.token.claims.IssuedAt)
	for _, cloud := range clouds(func(p target.Party) time.Duration { return p.Lifetime }) {
		if lifetime > cloud.Lifetime {
			o.warn("long-for-"+cloud.Code, "the token is valid for %s: %s takes a token for %s after its iat%s", lifetime, cloud.Name, cloud.Lifetime, cloud.Remark)
		}
	}
	o.pass("%s", lifetime)
}
