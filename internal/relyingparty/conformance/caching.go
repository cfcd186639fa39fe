package conformance

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestMaxAge is how long a new key is published before it signs, by default (Credence's publish period), and the
// longest that relying parties are known to keep a key set of their own accord.
const longestMaxAge = 24 * time.Hour

func documentCacheControl(_ string, d *document, o *outcome) {
	header := d.first.header.Get("Cache-Control")
	directives := directivesOf(strings.Join(d.first.header.Values("Cache-Control"), ","))
	_, noStore := directives["no-store"]
	_, noCache := directives["no-cache"]
	text, present := directives["max-age"]
	seconds, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	switch {
	case noStore || noCache || present && err == nil && seconds == 0:
		o.warn("not-cacheable", "%s may not be cached (Cache-Control: %.100s): every relying party requests it for every check, and an outage of the issuer is one of theirs; send public, max-age=3600", d.url, header)
	case !present:
		o.warn("no-max-age", "%s has no max-age in Cache-Control: relying parties choose a lifetime of their own, and kube-apiserver up to 1.36 requests it every time; send public, max-age=3600", d.url)
	case err != nil || seconds < 0:
		o.warn("bad-max-age", "%s has the max-age %.40q, which is not a number of seconds: it counts as stale (RFC 9111, section 4.2.1)", d.url, text)
	case time.Duration(min(seconds, 1<<32))*time.Second > longestMaxAge:
		o.warn("long-max-age", "%s may be kept for %d s, more than %s: kube-apiserver up to 1.36 does not request it again before that, so a new key is refused until then; send public, max-age=3600", d.url, seconds, longestMaxAge)
	default:
		o.pass("max-age=%d", seconds)
	}
}

// directivesOf returns the directives of a Cache-Control field (RFC 9111, section 5.2) by their names in lower case; of
// two of the same name the first counts.
func directivesOf(field string) map[string]string {
	directives := map[string]string{}
	for part := range strings.SplitSeq(field, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ToLower(name)
		if _, seen := directives[name]; name != "" && !seen {
			directives[name] = value
		}
	}
	return directives
}

func documentETag(_ string, d *document, o *outcome) {
	switch {
	case d.conditional == nil:
		o.warn("no-etag", "%s has no ETag: caches must transfer it whole each time (RFC 9110, section 8.8.3); send a strong one made of the bytes", d.url)
	case d.conditional.err != nil:
		o.away("conditional-failed", "%s was served once, and not for If-None-Match: %v", d.url, d.conditional.err)
	case d.conditional.status >= 500 || d.conditional.status == http.StatusTooManyRequests:
		o.away("conditional-failed", "%s was served once, and answers %s to If-None-Match", d.url, status(d.conditional))
	case d.conditional.status != http.StatusNotModified:
		o.warn("no-304", "%s has an ETag, but answers %s to If-None-Match with the same, not 304: caches transfer it whole each time", d.url, status(d.conditional))
	default:
		o.pass("304 for the same ETag")
	}
}
