package conformance

import (
	"net/netip"
	"net/url"
	"strings"
)

func issuerChecks() []check {
	return []check{
		{name: "issuer-url", judge: issuerURL},
		{name: "issuer-trailing-slash", needs: []string{"issuer-url"}, judge: issuerTrailingSlash},
		{name: "issuer-port", needs: []string{"issuer-url"}, judge: issuerPort},
		{name: "issuer-public", needs: []string{"issuer-url"}, judge: issuerPublic},
	}
}

// issuerURL: OpenID Connect Discovery 1.0, section 3: https, no query, no fragment.
func issuerURL(e *evidence, o *outcome) {
	if e.urlErr != nil {
		o.fail("form", "%v; relying parties take an https URL with a host and no userinfo, query or fragment", e.urlErr)
		return
	}
	o.pass("https, no userinfo, query or fragment")
}

func issuerTrailingSlash(e *evidence, o *outcome) {
	if strings.HasSuffix(e.issuer, "/") {
		o.warn("trailing-slash", "the issuer ends in a slash: relying parties compare byte by byte, and users leave the slash out; name the issuer without it")
		return
	}
	o.pass("none")
}

func issuerPort(e *evidence, o *outcome) {
	if u, err := url.Parse(e.issuer); err == nil && u.Port() != "" {
		o.warn("port", "the issuer names port %s: AWS IAM takes no issuer with a port; serve it on 443 and name none", u.Port())
		return
	}
	o.pass("none, so 443")
}

// privateSuffixes are names that only resolve inside of a network (RFC 6761, RFC 6762, ICANN's internal, Kubernetes).
var privateSuffixes = []string{".localhost", ".local", ".internal", ".svc", ".test", ".invalid", ".home.arpa"}

func issuerPublic(e *evidence, o *outcome) {
	u, err := url.Parse(e.issuer)
	if err != nil {
		o.skip("the issuer is not a URL")
		return
	}
	host := strings.ToLower(u.Hostname())
	private := !strings.Contains(host, ".")
	for _, suffix := range privateSuffixes {
		private = private || strings.HasSuffix(host, suffix)
	}
	if address, err := netip.ParseAddr(host); err == nil {
		private = !address.IsGlobalUnicast() || address.IsPrivate()
	}
	if private {
		o.warn("private-host", "%s cannot be reached from the internet: AWS, Microsoft Entra, Google and Alibaba fetch the documents over it; publish them under a public name (static hosting is enough), or upload the key set where the cloud takes one", host)
		return
	}
	o.pass("%s", host)
}
