package conformance

import (
	"strings"
	"time"

	"github.com/credence-id/credence/internal/relyingparty"
)

// Limits of clouds, as they document them or are seen to have them.
const (
	entraLength       = 600 // characters of subject and audience
	googleSubject     = 127 // bytes of google.subject
	minAWSSubject     = 6
	maxAWSSubject     = 255
	entraLifetime     = 25 * time.Hour
	googleLifetime    = 48 * time.Hour // exp must be before iat + 48 h
	alibabaDefaultAge = 12 * time.Hour // since iat; an administrator can set 1 h to 168 h
)

func tokenAudience(e *evidence, o *outcome) {
	audience := e.token.claims.Audience
	if len(audience) == 0 {
		o.fail("missing", "the token has no aud: clouds refuse it, and a thief could use it anywhere")
	}
	for _, one := range audience {
		if len(one) > entraLength {
			o.warn("long", "an audience of the token has %d characters: Microsoft Entra keeps %d", len(one), entraLength)
		}
	}
	for _, finding := range e.token.judged.Findings {
		if finding.Reason == relyingparty.WrongAudience && len(audience) > 0 {
			o.fail("other-audience", "%s (audiences are compared byte by byte)", finding.Detail)
		}
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
	switch {
	case size == 0:
		o.fail("missing", "the token has no sub: clouds refuse it, and grants have no subject to name")
		return
	case size > entraLength:
		o.warn("long-for-entra", "the sub of the token has %d bytes: Microsoft Entra keeps %d characters", size, entraLength)
	}
	if size > maxAWSSubject || size < minAWSSubject {
		o.warn("length-for-aws", "the sub of the token has %d bytes: AWS takes %d to %d", size, minAWSSubject, maxAWSSubject)
	}
	if size > googleSubject {
		o.warn("long-for-google", "the sub of the token has %d bytes: Google takes %d in google.subject; choose shorter names, or map another claim", size, googleSubject)
	}
	if strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r > '~' }) {
		o.warn("characters", "the sub of the token has a space or a character outside printable ASCII: grants that name it may not match")
	}
	o.pass("%d bytes", size)
}

func tokenTimes(e *evidence, o *outcome) {
	claims := e.token.claims
	for _, finding := range e.token.judged.Findings {
		switch finding.Reason {
		case relyingparty.Expired:
			o.fail("expired", "%s", finding.Detail)
		case relyingparty.NotYetValid:
			o.fail("not-yet-valid", "%s: check the clocks", finding.Detail)
		case relyingparty.MissingExpiry:
			o.fail("missing-exp", "%s: every cloud refuses it", finding.Detail)
		}
	}
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
	if lifetime >= googleLifetime {
		o.warn("long-for-google", "the token is valid for %s: Google takes less than %s", lifetime, googleLifetime)
	}
	if lifetime > entraLifetime {
		o.warn("long-for-entra", "the token is valid for %s: Microsoft Entra takes %s at most (AADSTS70023)", lifetime, entraLifetime)
	}
	if lifetime > alibabaDefaultAge {
		o.warn("long-for-alibaba", "the token is valid for %s: Alibaba RAM takes a token for %s after its iat, unless the provider is set otherwise", lifetime, alibabaDefaultAge)
	}
	o.pass("%s", lifetime)
}
