package conformance

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

func configurationChecks() []check {
	decoded := []string{"configuration-json"}
	return []check{
		{name: "configuration-issuer", needs: decoded, judge: configurationIssuer},
		{name: "configuration-members", needs: decoded, judge: configurationMembers},
		{name: "configuration-algorithms", needs: decoded, judge: configurationAlgorithms},
		{name: "configuration-jwks-uri", needs: decoded, judge: configurationKeySetURL},
		{name: "configuration-jwks-host", needs: []string{"configuration-jwks-uri"}, judge: configurationKeySetHost},
	}
}

// configurationIssuer: OpenID Connect Discovery 1.0, section 4.3: identical, byte for byte.
func configurationIssuer(e *evidence, o *outcome) {
	issuer, ok := strictjson.Text(e.configuration.members["issuer"])
	switch {
	case !ok:
		o.fail("missing", `"issuer" in %s is missing or not a string: it must be %.600q`, e.configuration.url, e.issuer)
	case issuer == e.issuer:
		o.pass("exactly the issuer")
	case withoutSlash(issuer) == withoutSlash(e.issuer):
		o.fail("trailing-slash", `"issuer" in %s is %.600q, checked is %.600q: they differ by the slash at the end, and relying parties compare byte by byte; use the same form everywhere`, e.configuration.url, issuer, e.issuer)
	case strings.EqualFold(issuer, e.issuer):
		o.fail("letter-case", `"issuer" in %s is %.600q, checked is %.600q: they differ in upper and lower case, and relying parties compare byte by byte`, e.configuration.url, issuer, e.issuer)
	default:
		o.fail("other-issuer", `"issuer" in %s is %.600q, not %.600q: the document is of another issuer, so its keys prove nothing about this one`, e.configuration.url, issuer, e.issuer)
	}
}

// configurationMembers: OpenID Connect Discovery 1.0, section 3. Members for logins are left out: an issuer of workload
// tokens has no logins.
func configurationMembers(e *evidence, o *outcome) {
	for _, member := range []string{"response_types_supported", "subject_types_supported"} {
		list, ok := strictjson.Texts(e.configuration.members[member])
		switch {
		case !ok:
			o.fail("missing", "%q in %s is missing or not an array of strings: some relying parties refuse the document without it", member, e.configuration.url)
		case len(list) == 0:
			o.fail("empty", "%q in %s is empty: name at least one", member, e.configuration.url)
		}
	}
	o.pass("the required members are there")
}

func configurationAlgorithms(e *evidence, o *outcome) {
	const member = "id_token_signing_alg_values_supported"
	listed, ok := strictjson.Texts(e.configuration.members[member])
	switch {
	case !ok:
		o.fail("missing", "%q in %s is missing or not an array of strings: list the algorithms of the keys, such as RS256", member, e.configuration.url)
	case len(listed) == 0:
		o.fail("empty", "%q in %s is empty: list the algorithms of the keys, such as RS256", member, e.configuration.url)
	case slices.Contains(listed, "none"):
		o.fail("none", "%q in %s lists none: tokens without a signature must never be accepted", member, e.configuration.url)
	default:
		o.pass("%s", strings.Join(listed, ", "))
	}
}

func configurationKeySetURL(e *evidence, o *outcome) {
	address, ok := strictjson.Text(e.configuration.members["jwks_uri"])
	if !ok {
		o.fail("missing", `"jwks_uri" in %s is missing or not a string`, e.configuration.url)
		return
	}
	if err := keySetURLError(address); err != nil {
		o.fail("form", `"jwks_uri" in %s is %.600q: %v`, e.configuration.url, redacted(address), err)
		return
	}
	o.pass("%s", address)
}

// keySetURLError returns why keys cannot be fetched from an address.
func keySetURLError(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme != "https":
		return errors.New("it is not https, so any host on the way could replace the keys")
	case u.Hostname() == "":
		return errors.New("it has no host")
	case u.User != nil:
		return errors.New("it has userinfo (a user name or password before the host)")
	case u.Fragment != "":
		return errors.New("it has a fragment")
	}
	return nil
}

// redacted hides a password in what may be a URL.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Sprintf("(%d characters that are not a URL)", len(address))
	}
	return u.Redacted()
}

func configurationKeySetHost(e *evidence, o *outcome) {
	if hostOf(e.keySet.url) != hostOf(e.configuration.url) {
		o.warn("other-host", "the keys are at %s, the discovery document at %s: the owner of the former decides which keys relying parties trust, and firewalls must open both; serve both from one host", hostOf(e.keySet.url), hostOf(e.configuration.url))
		return
	}
	o.pass("the same host")
}
