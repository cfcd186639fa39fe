package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/strictjson"
)

// tokenEvidence is what is known of the token. The token itself is not kept.
type tokenEvidence struct {
	given     bool
	length    int
	err       error // why it cannot be decoded
	claims    relyingparty.Inspection
	judged    relyingparty.Result
	judgedErr error // why its signature could not be checked
}

// judgeToken decodes the token and judges it by the documents that were fetched already.
func judgeToken(ctx context.Context, e *evidence, options Options) tokenEvidence {
	t := tokenEvidence{given: options.Token != "", length: len(options.Token)}
	if !t.given {
		return t
	}
	if t.claims, t.err = relyingparty.Inspect(options.Token); t.err != nil {
		return t
	}
	t.judged, t.judgedErr = relyingparty.Verify(ctx, options.Token, relyingparty.Options{
		Client:   &http.Client{Transport: recorded{e}},
		Issuer:   identity.Issuer(e.issuer),
		Audience: options.Audience,
		Clock:    func() time.Time { return e.now },
	})
	return t
}

// report fails a check for what a relying party finds, of one reason. format is for its detail.
func (t tokenEvidence) report(o *outcome, reason relyingparty.Reason, diagnosis, format string) {
	for _, finding := range t.judged.Findings {
		if finding.Reason == reason {
			o.fail(diagnosis, format, finding.Detail)
		}
	}
}

// recorded answers with the documents that were fetched, so that a token is judged by what the report is about.
type recorded struct{ seen *evidence }

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	d := &r.seen.configuration
	if request.URL.String() == r.seen.keySet.url {
		d = &r.seen.keySet
	}
	if d.first == nil || d.first.err != nil {
		return nil, errors.New("it could not be fetched")
	}
	return &http.Response{
		StatusCode: d.first.status, Header: http.Header{}, Request: request,
		Body: io.NopCloser(bytes.NewReader(d.first.body)),
	}, nil
}

func tokenChecks() []check {
	format := []string{"token-format"}
	keys := []string{"token-format", "jwks-keys"}
	return []check{
		{name: "token-size", judge: tokenSize},
		{name: "token-format", needs: []string{"token-size"}, judge: tokenFormat},
		{name: "token-type", needs: format, judge: tokenType},
		{name: "token-algorithm", needs: format, judge: tokenAlgorithm},
		{name: "token-kid", needs: keys, judge: tokenKeyID},
		{name: "token-signature", needs: append(keys, "token-algorithm", "token-kid", "configuration-issuer"), judge: tokenSignature},
		{name: "token-issuer", needs: format, judge: tokenIssuer},
		{name: "token-audience", needs: format, judge: tokenAudience},
		{name: "token-subject", needs: format, judge: tokenSubject},
		{name: "token-times", needs: format, judge: tokenTimes},
		{name: "token-lifetime", needs: append(format, "token-times"), judge: tokenLifetime},
	}
}

// largeToken is what the header lines of a request may have at many web servers, in bytes.
const largeToken = 8 << 10

func tokenSize(e *evidence, o *outcome) {
	switch {
	case !e.token.given:
		o.skip("skipped because no token was given")
	case e.token.length > relyingparty.MaxTokenLength:
		o.fail("too-large", "the token has %d bytes: relying parties read %d or a little more (AWS and Alibaba 20000 characters)", e.token.length, relyingparty.MaxTokenLength)
	case e.token.length > largeToken:
		o.warn("large", "the token has %d bytes: web servers often take no more than %d in the header of a request; leave claims out", e.token.length, largeToken)
	default:
		o.pass("%d bytes", e.token.length)
	}
}

func tokenFormat(e *evidence, o *outcome) {
	if e.token.err != nil {
		o.fail("malformed", "%v", e.token.err)
		return
	}
	e.token.report(o, relyingparty.Malformed, "extension", "%s")
	o.pass("a signed token in compact form")
}

// header returns a string member of the token's header.
func (t tokenEvidence) header(name string) (value string, present bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(t.claims.Header, &members) != nil {
		return "", false
	}
	raw, present := members[name]
	value, _ = strictjson.Text(raw)
	return value, present
}

// tokenType: typ is optional (RFC 7519, section 5.1); at+jwt is that of RFC 9068.
func tokenType(e *evidence, o *outcome) {
	typ, present := e.token.header("typ")
	if present && !slices.Contains([]string{"jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(typ)) {
		o.warn("unusual", "the typ of the token is %.60q: relying parties that look at it want JWT", typ)
		return
	}
	o.pass("%s", cmp.Or(typ, "(none, which is allowed)"))
}

func tokenAlgorithm(e *evidence, o *outcome) {
	algorithm := e.token.claims.Algorithm
	e.token.report(o, relyingparty.BadAlgorithm, "refused", "%s; sign with RS256 (accepted everywhere) or ES256")
	o.pass("%s", algorithm)
}

func tokenKeyID(e *evidence, o *outcome) {
	id := e.token.claims.KeyID
	known := slices.ContainsFunc(e.keys, func(key publishedKey) bool { return key.id == id })
	switch {
	case id == "":
		o.fail("missing", "the token names no key (kid): Google requires it, and after a rotation others must try every key")
	case !known:
		var published []string
		for _, key := range e.keys {
			published = append(published, key.id)
		}
		o.fail("not-published", "the token is signed with key %.200q, published are %s: it was signed before the key was published, after it was removed, or by another signer", id, words(published))
	default:
		o.pass("%s is published", id)
	}
}

func tokenSignature(e *evidence, o *outcome) {
	if e.token.judgedErr != nil {
		o.skip("skipped because the documents cannot be used: %v", e.token.judgedErr)
		return
	}
	e.token.report(o, relyingparty.BadSignature, "wrong", "%s")
	e.token.report(o, relyingparty.UnknownKey, "unusable-key", "%s")
	o.pass("by the published key")
}

func tokenIssuer(e *evidence, o *outcome) {
	switch issuer := e.token.claims.Issuer; {
	case issuer == "":
		o.fail("missing", "the token has no iss: every relying party refuses it")
	case issuer == e.issuer:
		o.pass("exactly the issuer")
	case withoutSlash(issuer) == withoutSlash(e.issuer):
		o.fail("trailing-slash", "the iss of the token is %.600q, checked is %.600q: they differ by the slash at the end, and relying parties compare byte by byte", issuer, e.issuer)
	default:
		o.fail("other-issuer", "the iss of the token is %.600q, checked is %.600q (issuers are compared byte by byte)", issuer, e.issuer)
	}
}
