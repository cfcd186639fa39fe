package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

func transportChecks() []check {
	answered := []string{"issuer-url", "reachable", "tls-version"}
	return []check{
		{name: "reachable", needs: []string{"issuer-url"}, judge: reachable},
		{name: "tls-version", needs: []string{"issuer-url", "reachable"}, judge: tlsVersion},
		{name: "tls-expiry", needs: answered, judge: tlsExpiry},
		{name: "tls-name", needs: answered, judge: tlsName},
		{name: "tls-chain", needs: append(answered, "tls-expiry", "tls-name"), judge: tlsChain},
	}
}

// reachable passes where a server answered at all, also if it answered with a certificate that is not accepted.
func reachable(e *evidence, o *outcome) { judgeReachable(o, &e.configuration) }

func judgeReachable(o *outcome, d *document) {
	err := d.first.err
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil || rejectedCertificate(err) != nil || refusedVersion(err):
		o.pass("a server answers at %s", hostOf(d.url))
	case isDNS:
		o.away("dns", "the name %q does not resolve: %v; publish it in DNS", dns.Name, dns)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err):
		o.away("timeout", "no complete answer from %s in time: %v; AWS STS gives up after 5 s", d.url, err)
	case isHandshake(err):
		o.fail("tls", "the TLS handshake with %s ends with: %v; serve https there", hostOf(d.url), err)
	default:
		o.away("connection", "%s cannot be fetched: %v; check that the server runs and can be reached from here", d.url, err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// isHandshake also covers a server that answers TLS with plain http.
func isHandshake(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	return strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") || strings.Contains(err.Error(), "tls: ")
}

// rejectedCertificate returns the certificates of a server whose chain was rejected, the server's own first.
func rejectedCertificate(err error) []*x509.Certificate {
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return failed.UnverifiedCertificates
	}
	return nil
}

// refusedVersion reports whether a handshake failed for the version of TLS. crypto/tls has no error value for it.
func refusedVersion(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "protocol version not supported") || strings.Contains(err.Error(), "unsupported protocol version"))
}

func tlsVersion(e *evidence, o *outcome) {
	for _, d := range e.documents() {
		switch {
		case refusedVersion(d.first.err):
			o.fail("old-version", "%s supports no version of TLS from 1.2 on: older ones are refused everywhere (RFC 8996); enable TLS 1.2 and 1.3", hostOf(d.url))
		case d.first.tls != nil && d.first.tls.Version < tls.VersionTLS12:
			o.fail("old-version", "%s uses %s: TLS before 1.2 is refused everywhere (RFC 8996); enable TLS 1.2 and 1.3", hostOf(d.url), tls.VersionName(d.first.tls.Version))
		case d.first.tls != nil:
			o.pass("%s", tls.VersionName(d.first.tls.Version))
		default:
			o.pass("1.2 or later")
		}
	}
}

// tlsExpiry warns of a certificate that should have been renewed: automatic renewal happens at a third of the lifetime.
func tlsExpiry(e *evidence, o *outcome) {
	for _, d := range e.documents() {
		certificate := d.certificate()
		if certificate == nil {
			continue
		}
		left, lifetime := certificate.NotAfter.Sub(e.now), certificate.NotAfter.Sub(certificate.NotBefore)
		until := certificate.NotAfter.UTC().Format(time.RFC3339)
		switch {
		case left < 0:
			o.fail("expired", "the certificate of %s expired at %s: renew it", hostOf(d.url), until)
		case e.now.Before(certificate.NotBefore):
			o.fail("not-yet-valid", "the certificate of %s is valid from %s on: check the clocks", hostOf(d.url), certificate.NotBefore.UTC().Format(time.RFC3339))
		case left < min(14*24*time.Hour, lifetime/4):
			o.warn("expires-soon", "the certificate of %s expires at %s: see why it was not renewed", hostOf(d.url), until)
		default:
			o.pass("valid until %s", until)
		}
	}
	o.skipIfNothingSeen("no certificate was seen")
}

func tlsName(e *evidence, o *outcome) {
	for _, d := range e.documents() {
		certificate := d.certificate()
		if certificate == nil {
			continue
		}
		if err := certificate.VerifyHostname(hostnameOf(d.url)); err != nil {
			o.fail("wrong-name", "the certificate of %s is not for this name: %v", hostOf(d.url), err)
			continue
		}
		o.pass("the certificate is for %s", hostnameOf(d.url))
	}
	o.skipIfNothingSeen("no certificate was seen")
}

func tlsChain(e *evidence, o *outcome) {
	for _, d := range e.documents() {
		if rejectedCertificate(d.first.err) == nil {
			o.pass("an authority that is trusted here signed it")
			continue
		}
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](d.first.err); unknown {
			o.fail("unknown-authority", "the certificate of %s is not of an authority that is trusted here: send the intermediate certificates too; if the authority is your own, name it to this check, and know that clouds do not trust it", hostOf(d.url))
			continue
		}
		o.fail("chain", "the certificate of %s is not accepted: %v", hostOf(d.url), d.first.err)
	}
}

// documents returns the requested documents, one for each server.
func (e *evidence) documents() []*document {
	asked := []*document{&e.configuration}
	if keys := &e.keySet; keys.first != nil && (keys.first.err != nil || hostOf(keys.url) != hostOf(e.configuration.url)) {
		asked = append(asked, keys)
	}
	return asked
}

// certificate is that of the server, accepted or not, or nil.
func (d *document) certificate() *x509.Certificate {
	if d.first.tls != nil && len(d.first.tls.PeerCertificates) > 0 {
		return d.first.tls.PeerCertificates[0]
	}
	if rejected := rejectedCertificate(d.first.err); len(rejected) > 0 {
		return rejected[0]
	}
	return nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

func hostnameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Hostname()
}
