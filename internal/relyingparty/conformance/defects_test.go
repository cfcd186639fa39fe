package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// defect is one thing that is planted, and everything that must be found then, as check/diagnosis.
type defect struct {
	plant   func(t *testing.T, s *site)
	verdict Verdict
	want    []string
}

const secretMember = "c2VjcmV0LW9mLXRoZS1pc3N1ZXI"

func defects() map[string]defect {
	all := map[string]defect{}
	for _, list := range []map[string]defect{issuerDefects(), transportDefects(), configurationDefects(), keyDefects(), tokenDefects(),
		documentDefects("configuration", configurationPath), documentDefects("jwks", jwksPath)} {
		for name, defect := range list {
			if _, twice := all[name]; twice {
				panic("two defects are called " + name)
			}
			all[name] = defect
		}
	}
	return all
}

func warning(plant func(*testing.T, *site), want ...string) defect {
	return defect{plant: plant, verdict: Pass, want: want}
}

func failure(plant func(*testing.T, *site), want ...string) defect {
	return defect{plant: plant, verdict: Fail, want: want}
}

func outage(plant func(*testing.T, *site), want ...string) defect {
	return defect{plant: plant, verdict: Unknown, want: want}
}

// issuedAt changes the checked issuer, and that of the document and the token.
func issuedAt(issuer string) func(*testing.T, *site) {
	return func(_ *testing.T, s *site) {
		s.options.Issuer, s.configuration["issuer"], s.claims["iss"] = issuer, issuer, issuer
	}
}

func issuerDefects() map[string]defect {
	return map[string]defect{
		"plain http":       failure(issuedAt("http://identity.example.com/team"), "issuer-url/form"),
		"query":            failure(issuedAt(siteIssuer+"?x=y"), "issuer-url/form"),
		"fragment":         failure(issuedAt(siteIssuer+"#x"), "issuer-url/form"),
		"user name":        failure(issuedAt("https://user@identity.example.com/team"), "issuer-url/form"),
		"empty issuer":     failure(issuedAt(""), "issuer-url/form", "token-issuer/missing"),
		"two slashes":      failure(issuedAt(siteIssuer+"//"), "issuer-url/form"),
		"slash everywhere": warning(issuedAt(siteIssuer+"/"), "issuer-trailing-slash/trailing-slash"),
		"port":             warning(otherIssuerHost("https://identity.example.com:8443/team"), "issuer-port/port"),
		"issuer in a network": warning(func(t *testing.T, s *site) {
			s.certificate.DNSNames = append(s.certificate.DNSNames, "issuer.credence-system.svc")
			otherIssuerHost("https://issuer.credence-system.svc/team")(t, s)
		}, "issuer-public/private-host"),
		"private address": warning(func(t *testing.T, s *site) {
			s.certificate.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)}
			otherIssuerHost("https://10.0.0.1/team")(t, s)
		}, "issuer-public/private-host"),
		"name without a dot": warning(func(t *testing.T, s *site) {
			s.certificate.DNSNames = append(s.certificate.DNSNames, "issuer")
			otherIssuerHost("https://issuer/team")(t, s)
		}, "issuer-public/private-host"),
	}
}

func otherIssuerHost(issuer string) func(*testing.T, *site) {
	return func(t *testing.T, s *site) {
		issuedAt(issuer)(t, s)
		s.configuration["jwks_uri"] = issuer + "/jwks"
	}
}

func transportDefects() map[string]defect {
	dialing := func(err error) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) { s.dial = func(context.Context) (net.Conn, error) { return nil, err } }
	}
	return map[string]defect{
		"name does not resolve": outage(dialing(&net.DNSError{Err: "no such host", Name: "identity.example.com", IsNotFound: true}), "reachable/dns"),
		"connection refused":    outage(dialing(errors.New("connection refused")), "reachable/connection"),
		"no answer": outage(func(_ *testing.T, s *site) {
			s.options.Timeout = 10 * time.Millisecond
			s.dial = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		}, "reachable/timeout"),
		"http on the port of https": failure(func(_ *testing.T, s *site) { s.plain = true }, "reachable/tls"),
		"TLS 1.1":                   failure(func(_ *testing.T, s *site) { s.tls.MinVersion, s.tls.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, "tls-version/old-version"),
		"certificate expired":       failure(func(_ *testing.T, s *site) { s.certificate.NotAfter = start.Add(-time.Hour) }, "tls-expiry/expired"),
		"certificate of tomorrow":   failure(func(_ *testing.T, s *site) { s.certificate.NotBefore = start.Add(time.Hour) }, "tls-expiry/not-yet-valid"),
		"certificate ends soon":     warning(func(_ *testing.T, s *site) { s.certificate.NotAfter = start.Add(5 * time.Hour) }, "tls-expiry/expires-soon"),
		"certificate of another name": failure(func(_ *testing.T, s *site) { s.certificate.DNSNames = []string{"other.example.com"} },
			"tls-name/wrong-name"),
		"certificate of a client": failure(func(_ *testing.T, s *site) {
			s.certificate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		},
			"tls-chain/chain"),
		"unknown authority": failure(func(_ *testing.T, s *site) { s.trusted = root() }, "tls-chain/unknown-authority"),
		"key set behind a certificate of another name": failure(func(_ *testing.T, s *site) {
			s.certificate.DNSNames = []string{"identity.example.com"}
			s.configuration["jwks_uri"] = "https://keys.example.com" + jwksPath
		}, "tls-name/wrong-name", "configuration-jwks-host/other-host"),
		"key set cannot be reached": outage(func(_ *testing.T, s *site) {
			s.handle[jwksPath] = func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }
		}, "jwks-reachable/connection"),
	}
}

// documentDefects are planted in either document.
func documentDefects(what, path string) map[string]defect {
	fields := func(name, value string) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) { s.header[path][name] = []string{value} }
	}
	answer := func(code int, location string) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) {
			s.handle[path] = func(w http.ResponseWriter) bool {
				w.Header().Set("Location", location)
				w.WriteHeader(code)
				return true
			}
		}
	}
	// redirect leads from the path of the document to another that serves it.
	redirect := func(to string) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) {
			var asked atomic.Int32
			s.handle[path] = func(w http.ResponseWriter) bool {
				if asked.Add(1)%2 == 0 {
					return false
				}
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
				return true
			}
		}
	}
	body := func(change func(string) string) func(*testing.T, *site) {
		return func(t *testing.T, s *site) {
			documents := healthy(t)
			text := string(documents.Configuration())
			if what == "jwks" {
				text = string(documents.JWKS())
			}
			s.body[path] = []byte(change(text))
		}
	}
	later := func(fail func(w http.ResponseWriter, n int32) bool) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) {
			var asked atomic.Int32
			s.handle[path] = func(w http.ResponseWriter) bool { return fail(w, asked.Add(1)) }
		}
	}
	away := func(n int32) func(*testing.T, *site) {
		return later(func(w http.ResponseWriter, asked int32) bool {
			if asked == n {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return asked == n
		})
	}
	contentType := failure(fields("Content-Type", "binary/octet-stream"), what+"-content-type/content-type")
	if what == "jwks" {
		contentType.verdict = Pass // RFC 7517 registers a type, and demands none
	}
	list := map[string]defect{
		"is missing":           failure(answer(404, ""), what+"-status/not-found"),
		"needs a login":        failure(answer(401, ""), what+"-status/status"),
		"server is down":       outage(answer(503, ""), what+"-status/server-error"),
		"throttled":            outage(answer(429, ""), what+"-status/server-error"),
		"redirects to http":    failure(answer(302, "http://identity.example.com/x"), what+"-status/redirect"),
		"redirects for ever":   failure(answer(302, path), what+"-status/redirect"),
		"redirects to a host":  failure(redirect("https://keys.example.com"+path), what+"-redirect/other-host"),
		"redirects to itself":  warning(redirect(path), what+"-redirect/same-host"),
		"of another type":      contentType,
		"without a type":       {plant: fields("Content-Type", ""), verdict: contentType.verdict, want: contentType.want},
		"too large":            failure(body(func(s string) string { return s + strings.Repeat(" ", maxKeySet) }), what+"-size/too-large"),
		"empty":                failure(body(func(string) string { return "" }), what+"-size/empty"),
		"slow":                 warning(func(_ *testing.T, s *site) { s.takes[path] = 1500 * time.Millisecond }, what+"-response-time/slow"),
		"too slow":             failure(func(_ *testing.T, s *site) { s.takes[path] = 6 * time.Second }, what+"-response-time/too-slow"),
		"no Cache-Control":     warning(fields("Cache-Control", ""), what+"-cache-control/no-max-age"),
		"no-store":             warning(fields("Cache-Control", "no-store"), what+"-cache-control/not-cacheable"),
		"max-age zero":         warning(fields("Cache-Control", "public, max-age=0"), what+"-cache-control/not-cacheable"),
		"max-age of words":     warning(fields("Cache-Control", "max-age=soon"), what+"-cache-control/bad-max-age"),
		"max-age of a year":    warning(fields("Cache-Control", "public, Max-Age=31536000"), what+"-cache-control/long-max-age"),
		"no ETag":              warning(fields("Etag", ""), what+"-etag/no-etag"),
		"ETag without 304":     warning(func(_ *testing.T, s *site) { s.forgets[path] = true }, what+"-etag/no-304"),
		"down the second time": outage(away(2), what+"-stable/second-failed"),
		"down the third time":  outage(away(3), what+"-etag/conditional-failed"),
		"replicas differ": failure(later(func(w http.ResponseWriter, n int32) bool {
			if n == 2 {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte("{}"))
			}
			return n == 2
		}), what+"-stable/differs"),
		"not JSON":         failure(body(func(string) string { return "<html>" }), what+"-json/strict-json"),
		"trailing data":    failure(body(func(s string) string { return s + "{}" }), what+"-json/strict-json"),
		"duplicate member": failure(body(func(s string) string { return strings.Replace(s, "{", `{"x":1,"x":2,`, 1) }), what+"-json/strict-json"),
		"not UTF-8":        failure(body(func(s string) string { return strings.Replace(s, "{", "{\"x\":\"\xff\",", 1) }), what+"-json/strict-json"),
		"an array":         failure(body(func(string) string { return "[]" }), what+"-json/strict-json"),
	}
	named := map[string]defect{}
	for name, defect := range list {
		named[what+" "+name] = defect
	}
	return named
}

func configurationDefects() map[string]defect {
	member := func(name string, value any) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) {
			if s.configuration[name] = value; value == nil {
				delete(s.configuration, name)
			}
		}
	}
	const algorithms = "id_token_signing_alg_values_supported"
	return map[string]defect{
		"slash in the document":    failure(member("issuer", siteIssuer+"/"), "configuration-issuer/trailing-slash"),
		"slash in the checked URL": failure(func(_ *testing.T, s *site) { s.options.Issuer += "/" }, "issuer-trailing-slash/trailing-slash", "configuration-issuer/trailing-slash", "token-issuer/trailing-slash"),
		"upper case":               failure(member("issuer", "https://Identity.example.com/team"), "configuration-issuer/letter-case"),
		"document of another":      failure(member("issuer", "https://other.example.com"), "configuration-issuer/other-issuer"),
		"no issuer":                failure(member("issuer", nil), "configuration-issuer/missing"),
		"no response types":        failure(member("response_types_supported", nil), "configuration-members/missing"),
		"no subject types":         failure(member("subject_types_supported", "public"), "configuration-members/missing"),
		"empty subject types":      failure(member("subject_types_supported", []string{}), "configuration-members/empty"),
		"no algorithms":            failure(member(algorithms, nil), "configuration-algorithms/missing", "token-algorithm/refused"),
		"empty algorithms":         failure(member(algorithms, []string{}), "configuration-algorithms/empty", "token-algorithm/refused"),
		"algorithm none":           failure(member(algorithms, []string{"RS256", "ES256", "none"}), "configuration-algorithms/none"),
		"algorithm without a key":  warning(member(algorithms, []string{"RS256", "ES256", "ES384"}), "jwks-algorithms-listed/no-key"),
		"algorithm not listed":     failure(func(_ *testing.T, s *site) { s.configuration[algorithms] = []string{"ES256"} }, "jwks-algorithms-listed/not-listed"),
		"no jwks_uri":              failure(member("jwks_uri", nil), "configuration-jwks-uri/missing"),
		"jwks_uri of http":         failure(member("jwks_uri", "http://identity.example.com/team/jwks"), "configuration-jwks-uri/form"),
		"jwks_uri with a password": failure(member("jwks_uri", "https://a:"+secretMember+"@identity.example.com/team/jwks"), "configuration-jwks-uri/form"),
		"keys on another host":     warning(member("jwks_uri", "https://keys.example.com/team/jwks"), "configuration-jwks-host/other-host"),
	}
}

// more adds a key to those of the site that has the members given, and otherwise those of the first, under another kid.
func more(members map[string]any) func(*testing.T, *site) {
	return func(_ *testing.T, s *site) {
		key := maps.Clone(s.keys[0])
		key["kid"] = "planted"
		maps.Copy(key, members)
		maps.DeleteFunc(key, func(_ string, value any) bool { return value == nil })
		s.keys = append(s.keys, key)
	}
}

func base64url(octets []byte) string { return base64.RawURLEncoding.EncodeToString(octets) }

// modulus is an odd number of that many bits.
func modulus(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return n.SetBit(n, 0, 1)
}

func rsaOf(bits uint) func(*testing.T, *site) {
	return more(map[string]any{"n": base64url(modulus(bits).Bytes())})
}

// curveKey replaces everything of the planted key by a point, with its first and last byte changed.
func curveKey(curve elliptic.Curve, name, algorithm string, x func([]byte) string) func(*testing.T, *site) {
	return func(t *testing.T, s *site) {
		key := testkit.Need(ecdsa.GenerateKey(curve, rand.Reader))(t)
		point := testkit.Need(key.PublicKey.Bytes())(t)
		half := len(point[1:]) / 2
		more(map[string]any{
			"kty": "EC", "crv": name, "alg": algorithm, "n": nil, "e": nil,
			"x": x(point[1 : 1+half]), "y": base64url(point[1+half:]),
		})(t, s)
	}
}

func keyDefects() map[string]defect {
	listing := func(algorithms ...string) func(*site) {
		return func(s *site) { s.configuration["id_token_signing_alg_values_supported"] = algorithms }
	}
	with := func(plant func(*testing.T, *site), and func(*site)) func(*testing.T, *site) {
		return func(t *testing.T, s *site) { plant(t, s); and(s) }
	}
	spoiled := func(change func([]byte) []byte) func([]byte) string {
		return func(octets []byte) string { return base64url(change(octets)) }
	}
	return map[string]defect{
		"no keys member":         failure(func(_ *testing.T, s *site) { s.keySet = map[string]any{"keys": nil} }, "jwks-keys/missing"),
		"no key":                 failure(func(_ *testing.T, s *site) { s.keySet = map[string]any{"keys": []string{}} }, "jwks-keys/empty"),
		"key that is a string":   failure(func(_ *testing.T, s *site) { s.keySet = map[string]any{"keys": []any{s.keys[0], s.keys[1], "key"}} }, "jwks-keys/not-an-object"),
		"member beside keys":     warning(func(_ *testing.T, s *site) { s.keySet = map[string]any{"x": 1} }, "jwks-keys/other-member"),
		"private RSA key":        failure(more(map[string]any{"d": secretMember, "p": secretMember}), "jwks-private-members/private-key-published"),
		"symmetric key":          failure(more(map[string]any{"k": secretMember}), "jwks-private-members/private-key-published"),
		"certificate in a key":   warning(more(map[string]any{"x5c": []string{"x"}, "x5t": "x"}), "jwks-members/other-member"),
		"nine keys":              warning(keys(9), "jwks-count/many"),
		"a hundred and one keys": failure(keys(101), "jwks-count/too-many"),
		"no kid":                 failure(more(map[string]any{"kid": nil}), "jwks-kid/missing"),
		"kid that is a number":   failure(more(map[string]any{"kid": 1}), "jwks-kid/missing"),
		"kid twice":              failure(func(t *testing.T, s *site) { more(map[string]any{"kid": s.keys[0]["kid"]})(t, s) }, "jwks-kid/twice"),
		"no use":                 warning(more(map[string]any{"use": nil}), "jwks-use/missing"),
		"use of encryption":      warning(more(map[string]any{"use": "enc"}), "jwks-use/not-sig"),
		"no alg":                 warning(more(map[string]any{"alg": nil}), "jwks-algorithm/missing"),
		"alg of another type":    failure(with(more(map[string]any{"alg": "HS256"}), listing("RS256", "ES256", "HS256")), "jwks-algorithm/mismatch"),
		"alg PS256":              warning(with(more(map[string]any{"alg": "PS256"}), listing("RS256", "ES256", "PS256")), "jwks-algorithm/unusual"),
		"curve P-384":            warning(with(curveKey(elliptic.P384(), "P-384", "ES384", base64url), listing("RS256", "ES256", "ES384")), "jwks-algorithm/unusual"),
		"Ed25519": warning(with(more(map[string]any{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "n": nil, "e": nil, "x": base64url(make([]byte, 32))}),
			listing("RS256", "ES256", "EdDSA")), "jwks-algorithm/unusual"),
		"unknown type":        failure(more(map[string]any{"kty": "AKP", "alg": nil, "n": nil, "e": nil}), "jwks-algorithm/unknown-type"),
		"ES256 alone":         warning(func(_ *testing.T, s *site) { s.keys = s.keys[1:]; listing("ES256")(s) }, "jwks-algorithm/no-rs256"),
		"padding":             failure(more(map[string]any{"e": "AQAB="}), "jwks-encoding/base64url"),
		"plain base64":        failure(more(map[string]any{"n": "+/" + base64url(modulus(2032).Bytes())}), "jwks-encoding/base64url"),
		"no modulus":          failure(more(map[string]any{"n": nil}), "jwks-encoding/base64url"),
		"zero before modulus": failure(more(map[string]any{"n": base64url(append([]byte{0}, modulus(2048).Bytes()...))}), "jwks-encoding/leading-zeros"),
		"short coordinate":    failure(curveKey(elliptic.P256(), "P-256", "ES256", spoiled(func(x []byte) []byte { return x[1:] })), "jwks-encoding/coordinate-length"),
		"no point": failure(curveKey(elliptic.P256(), "P-256", "ES256", spoiled(func(x []byte) []byte { return make([]byte, len(x)) })),
			"jwks-material/not-on-curve"),
		"even modulus":  failure(more(map[string]any{"n": base64url(new(big.Int).SetBit(modulus(2048), 0, 0).Bytes())}), "jwks-material/modulus"),
		"even exponent": failure(more(map[string]any{"e": "AQAA"}), "jwks-material/exponent"),
		"exponent 3":    warning(more(map[string]any{"e": "Aw"}), "jwks-material/exponent"),
		"huge exponent": failure(more(map[string]any{"e": base64url(modulus(64).Bytes())}), "jwks-material/exponent"),
		"RSA of 1024":   failure(rsaOf(1024), "jwks-size-of-keys/short"),
		"RSA of 2047":   failure(rsaOf(2047), "jwks-size-of-keys/short"),
		"RSA of 2056":   warning(rsaOf(2056), "jwks-size-of-keys/odd-size"),
		"RSA of 16384":  failure(rsaOf(16384), "jwks-size-of-keys/long"),
	}
}

// keys makes the set have that many keys.
func keys(count int) func(*testing.T, *site) {
	return func(t *testing.T, s *site) {
		for i := range count - len(s.keys) {
			more(map[string]any{"kid": fmt.Sprintf("planted-%d", i)})(t, s)
		}
	}
}

func tokenDefects() map[string]defect {
	claim := func(name string, value any) func(*testing.T, *site) {
		return func(_ *testing.T, s *site) { s.claims[name] = value }
	}
	lasting := func(d time.Duration) func(*testing.T, *site) {
		return claim("exp", start.Add(-time.Minute).Add(d).Unix())
	}
	return map[string]defect{
		"huge token":   failure(claim("x", strings.Repeat("x", 16<<10)), "token-size/too-large"),
		"large token":  warning(claim("x", strings.Repeat("x", 7<<10)), "token-size/large"),
		"cut token":    failure(func(_ *testing.T, s *site) { s.spoil = func(token string) string { return token[:20] } }, "token-format/malformed"),
		"padded token": failure(func(_ *testing.T, s *site) { s.spoil = func(token string) string { return token + "=" } }, "token-format/malformed"),
		"extension":    failure(func(_ *testing.T, s *site) { s.headers["crit"] = []string{"x"}; s.headers["x"] = 1 }, "token-format/extension"),
		"unusual typ":  warning(func(_ *testing.T, s *site) { s.headers["typ"] = "secevent+jwt" }, "token-type/unusual"),
		"algorithm ES384": failure(func(_ *testing.T, s *site) {
			key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
			if err != nil {
				panic(err)
			}
			s.signer = key
		}, "token-algorithm/refused"),
		"algorithm not published": failure(func(_ *testing.T, s *site) {
			s.configuration["id_token_signing_alg_values_supported"] = []string{"RS256"}
		}, "jwks-algorithms-listed/not-listed", "token-algorithm/refused"),
		"token without kid":    failure(func(_ *testing.T, s *site) { s.keyID = "" }, "token-kid/missing"),
		"unknown kid":          failure(func(_ *testing.T, s *site) { s.keyID = "old" }, "token-kid/not-published"),
		"signed by a stranger": failure(func(_ *testing.T, s *site) { s.signer = stranger() }, "token-signature/wrong"),
		"key of encryption":    failure(func(_ *testing.T, s *site) { s.keys[1]["use"] = "enc" }, "jwks-use/not-sig", "token-signature/unusable-key"),
		"token of another":     failure(claim("iss", "https://other.example.com"), "token-issuer/other-issuer"),
		"iss with a slash":     failure(claim("iss", siteIssuer+"/"), "token-issuer/trailing-slash"),
		"no iss":               failure(claim("iss", nil), "token-issuer/missing"),
		"no aud":               failure(claim("aud", nil), "token-audience/missing"),
		"long aud":             warning(claim("aud", strings.Repeat("a", 601)), "token-audience/long"),
		"aud of others":        failure(func(_ *testing.T, s *site) { s.options.Audience = "three" }, "token-audience/other-audience"),
		"no sub":               failure(claim("sub", nil), "token-subject/missing"),
		"short sub":            warning(claim("sub", "short"), "token-subject/length-for-aws"),
		"sub of 128":           warning(claim("sub", strings.Repeat("a", 128)), "token-subject/long-for-google"),
		"sub of 256":           warning(claim("sub", strings.Repeat("a", 256)), "token-subject/length-for-aws", "token-subject/long-for-google"),
		"sub of 601":           warning(claim("sub", strings.Repeat("a", 601)), "token-subject/long-for-entra", "token-subject/length-for-aws", "token-subject/long-for-google"),
		"sub with a space":     warning(claim("sub", "system of two words"), "token-subject/characters"),
		"expired":              failure(claim("exp", start.Unix()), "token-times/expired"),
		"no exp":               failure(claim("exp", nil), "token-times/missing-exp"),
		"not yet valid":        failure(claim("nbf", start.Add(time.Minute).Unix()), "token-times/not-yet-valid"),
		"no iat":               failure(claim("iat", nil), "token-times/missing-iat"),
		"iat in the future":    failure(claim("iat", start.Add(time.Minute).Unix()), "token-times/issued-in-future"),
		"exp before iat": failure(func(_ *testing.T, s *site) {
			s.claims["iat"], s.claims["exp"] = start.Add(-time.Minute).Unix(), start.Add(-2*time.Minute).Unix()
		}, "token-times/expired", "token-times/exp-before-iat"),
		"12 hours": {plant: lasting(12 * time.Hour), verdict: Pass},
		"13 hours": warning(lasting(13*time.Hour), "token-lifetime/long-for-alibaba"),
		"26 hours": warning(lasting(26*time.Hour), "token-lifetime/long-for-entra", "token-lifetime/long-for-alibaba"),
		"48 hours": warning(lasting(48*time.Hour), "token-lifetime/long-for-google", "token-lifetime/long-for-entra", "token-lifetime/long-for-alibaba"),
	}
}
