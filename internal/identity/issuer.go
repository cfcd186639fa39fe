package identity

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Issuer is the URL of the signer of tokens: the iss claim (OpenID Connect Discovery 1.0, section 3), byte for byte.
// It is https, has a host, and has no query, fragment, userinfo or trailing slash.
type Issuer string

// maxIssuerLength is what Microsoft Entra keeps of an issuer; no other relying party keeps less.
const maxIssuerLength = 600

// ParseIssuer returns s as an Issuer, or an error that names the part of the URL that is not allowed.
func ParseIssuer(s string) (Issuer, error) {
	if s == "" {
		return "", errors.New("issuer is empty: it must be an https URL such as https://identity.example.com")
	}
	if len(s) > maxIssuerLength {
		return "", fmt.Errorf("issuer is %d characters long, at most %d are allowed", len(s), maxIssuerLength)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		return "", fmt.Errorf("issuer %q has a space or a character outside printable ASCII at position %d", s, i)
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", fmt.Errorf("issuer is not a URL: %w", withoutURL(err))
	}
	switch {
	case u.User != nil:
		return "", errors.New("issuer has userinfo (a user name or password before the host), which is not allowed")
	case !strings.HasPrefix(s, "https://"):
		return "", fmt.Errorf("issuer %q must start with https://", s)
	case u.Hostname() == "":
		return "", fmt.Errorf("issuer %q has no host", s)
	case strings.Trim(u.Host, hostCharacters) != "" || strings.HasSuffix(u.Host, ":"):
		return "", fmt.Errorf("issuer %q has a host that is not a host name or address with an optional port", s)
	case u.RawQuery != "" || u.ForceQuery:
		return "", fmt.Errorf("issuer %q has a query, which is not allowed", s)
	case strings.Contains(s, "#"):
		return "", fmt.Errorf("issuer %q has a fragment, which is not allowed", s)
	case strings.HasSuffix(s, "/"):
		return "", fmt.Errorf("issuer %q has a trailing slash, which is not allowed: relying parties compare issuers byte by byte", s)
	case u.Path != "" && (u.EscapedPath() != u.Path || strings.Contains(u.Path, "//") || hasDotSegment(u.Path)):
		return "", fmt.Errorf("issuer %q has an escaped, empty or dot segment in its path, which is not allowed", s)
	}
	return Issuer(s), nil
}

// hostCharacters are those of host names, IP addresses and ports. Go's parser takes more, such as quotes and commas.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]"

// withoutURL drops the URL from an error of net/url: it may hold a password.
func withoutURL(err error) error {
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}

func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// ConfigurationURL is where the discovery document of the issuer is served (OpenID Connect Discovery 1.0, section 4).
func (i Issuer) ConfigurationURL() string { return string(i) + "/.well-known/openid-configuration" }

// JWKSURL is where Credence serves the issuer's public keys (the jwks_uri of the discovery document).
func (i Issuer) JWKSURL() string { return string(i) + "/jwks" }

// Path is the path of the issuer's URL: empty, or starting with a slash.
func (i Issuer) Path() string {
	u, err := url.Parse(string(i))
	if err != nil {
		return ""
	}
	return u.Path
}
