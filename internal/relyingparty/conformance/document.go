package conformance

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// How long an answer may take. AWS STS gives up on an issuer after 5 s (AWS re:Post, "InvalidIdentityToken"); a second
// is what is left of that when it fetches both documents on a slow day.
const (
	slow    = time.Second
	tooSlow = 5 * time.Second
)

// documentChecks are the checks that hold for either document, under names that start with what it is.
func documentChecks(what string, of func(*evidence) *document) []check {
	on := func(judge func(string, *document, *outcome)) func(*evidence, *outcome) {
		return func(e *evidence, o *outcome) { judge(what, of(e), o) }
	}
	var list []check
	if what == "jwks" {
		list = append(list, check{name: "jwks-reachable", needs: []string{"configuration-jwks-uri"}, judge: on(func(_ string, d *document, o *outcome) { judgeReachable(o, d) })})
	}
	fetched := []string{what + "-status"}
	return append(list,
		check{name: what + "-status", judge: on(documentStatus)},
		check{name: what + "-redirect", needs: fetched, judge: on(documentRedirect)},
		check{name: what + "-content-type", needs: fetched, judge: on(documentContentType)},
		check{name: what + "-size", needs: fetched, judge: on(documentSize)},
		check{name: what + "-response-time", needs: fetched, judge: on(documentResponseTime)},
		check{name: what + "-cache-control", needs: fetched, judge: on(documentCacheControl)},
		check{name: what + "-etag", needs: fetched, judge: on(documentETag)},
		check{name: what + "-stable", needs: fetched, judge: on(documentStable)},
		check{name: what + "-json", needs: append(fetched, what+"-size"), judge: on(documentJSON)},
	)
}

func documentStatus(what string, d *document, o *outcome) {
	switch {
	case d.first == nil:
		o.skip("skipped because its address is not known")
	case rejectedCertificate(d.first.err) != nil:
		o.skip("skipped because the certificate of %s is not accepted", hostOf(d.url))
	case refusedVersion(d.first.err):
		o.skip("skipped because of tls-version")
	case d.first.err != nil && what == "jwks":
		o.skip("skipped because of jwks-reachable")
	case d.first.err != nil:
		o.skip("skipped because of reachable")
	case d.first.status >= 500 || d.first.status == http.StatusTooManyRequests:
		o.away("server-error", "%s answers %s: see the server's log", d.url, status(d.first))
	case d.first.status == http.StatusNotFound:
		o.fail("not-found", "there is nothing at %s (404): publish the document at exactly this path", d.url)
	case len(d.first.redirects) > 0 && d.first.status >= 300 && d.first.status < 400:
		o.fail("redirect", "%s redirects to %.300q, which is not followed: serve the document there itself", d.url, d.first.redirects[len(d.first.redirects)-1])
	case d.first.status != http.StatusOK:
		o.fail("status", "%s answers %s, not 200: it must be public, without any login", d.url, status(d.first))
	default:
		o.pass("200 from %s", d.url)
	}
}

func status(e *exchange) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.status, http.StatusText(e.status)))
}

func documentRedirect(_ string, d *document, o *outcome) {
	for _, to := range d.first.redirects {
		if hostOf(to) != hostOf(d.url) {
			o.fail("other-host", "%s redirects to another host, %.300q: relying parties may not follow, and the owner of that host decides which keys are trusted; serve the document itself", d.url, to)
		} else {
			o.warn("same-host", "%s redirects to %.300q: some relying parties do not follow; serve the document itself", d.url, to)
		}
	}
	o.pass("none")
}

func documentContentType(what string, d *document, o *outcome) {
	header := d.first.header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(header)
	wanted := []string{"application/json"}
	if what == "jwks" {
		wanted = []string{"application/jwk-set+json", "application/json"}
	}
	if err == nil && slices.Contains(wanted, media) {
		o.pass("%s", header)
		return
	}
	detail := "%s is served as %.100q, it must be %s: set the content type of the object in the bucket or server"
	if what == "jwks" {
		// RFC 7517, section 8.5.1 registers the type, no specification demands it.
		o.warn("content-type", detail, d.url, header, strings.Join(wanted, " or "))
		return
	}
	// OpenID Connect Discovery 1.0, section 4.2: it MUST be application/json.
	o.fail("content-type", detail, d.url, header, strings.Join(wanted, " or "))
}

func documentSize(_ string, d *document, o *outcome) {
	switch size := len(d.first.body); {
	case size > d.limit:
		o.fail("too-large", "%s has more than %d bytes: relying parties bound what they read; a full set of 100 keys has less", d.url, d.limit)
	case size == 0:
		o.fail("empty", "%s is empty", d.url)
	default:
		o.pass("%d bytes", size)
	}
}

func documentResponseTime(_ string, d *document, o *outcome) {
	took := d.first.elapsed.Round(time.Millisecond)
	switch {
	case took > tooSlow:
		o.fail("too-slow", "%s took %s: AWS STS gives up after %s; serve ready-made bytes, or put a CDN before it", d.url, took, tooSlow)
	case took > slow:
		o.warn("slow", "%s took %s, more than %s: AWS STS gives up after %s, and other relying parties wait with a request in hand", d.url, took, slow, tooSlow)
	default:
		o.pass("%s", took)
	}
}

func documentJSON(_ string, d *document, o *outcome) {
	if d.jsonErr != nil {
		o.fail("strict-json", "%s: %v; it must be one JSON object in UTF-8 with unique member names and nothing after it", d.url, d.jsonErr)
		return
	}
	o.pass("one object, unique names")
}

// documentStable requests twice: with replicas that differ a relying party sees a key, and then not.
func documentStable(_ string, d *document, o *outcome) {
	switch {
	case d.second.err != nil:
		o.away("second-failed", "%s was served once, and not a second time: %v", d.url, d.second.err)
	case d.second.status != http.StatusOK:
		o.away("second-failed", "%s was served once, and answers %s a second time", d.url, status(d.second))
	case !bytes.Equal(d.first.body, d.second.body):
		o.fail("differs", "%s is not the same bytes in two requests: either it changed right now (try again), or replicas serve different keys, which relying parties refuse at random", d.url)
	default:
		o.pass("the same bytes in two requests")
	}
}
