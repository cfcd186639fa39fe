package tokenendpoint_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/tokenendpoint"
)

// Secrets go to https, or to this machine, by the text of the URL.
func TestCheck(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://sts.example.com/token?a=b":  "",
		"http://127.0.0.1:1/token":           "",
		"http://[::1]/token":                 "",
		"http://localhost:1":                 "",
		"http://localhost.example.com":       `must be https, not "http"`,
		"http://127.0.0.1.example.com":       `must be https, not "http"`,
		"http://10.0.0.1":                    `must be https, not "http"`,
		"ftp://localhost":                    `must be https, not "ftp"`,
		"https://u:p@sts.example.com":        "without a user",
		"https://sts.example.com/#a":         "without a user or a fragment",
		"https:///token":                     "must be a URL with a host",
		"sts.example.com":                    "must be a URL with a host",
		"https://sts.example.com/\x00":       "must be a URL with a host",
		"":                                   "must be a URL with a host",
		"http://127.0.0.1@sts.example.com":   "without a user",
		"https://sts.example.com:port/token": "must be a URL with a host",
	} {
		err := tokenendpoint.Check(endpoint)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", endpoint, err, want)
		}
	}
}

func TestForm(t *testing.T) {
	const grant = "urn:ietf:params:oauth:grant-type:token-exchange"
	least := url.Values{"grant_type": {grant}, "subject_token": {"t"}, "subject_token_type": {tokenendpoint.JWT}}
	if diff := cmp.Diff(least, tokenendpoint.Exchange{SubjectToken: "t"}.Form()); diff != "" {
		t.Error(diff)
	}
	all := url.Values{
		"grant_type": {grant}, "subject_token": {"t"}, "subject_token_type": {tokenendpoint.IDToken}, "requested_token_type": {tokenendpoint.AccessToken},
		"resource": {"r", "s"}, "audience": {"a", "b"}, "scope": {"c d"},
	}
	if diff := cmp.Diff(all, tokenendpoint.Exchange{
		SubjectToken: "t", SubjectTokenType: tokenendpoint.IDToken, RequestedTokenType: tokenendpoint.AccessToken,
		Resources: []string{"r", "s"}, Audiences: []string{"a", "b"}, Scopes: []string{"c", "d"},
	}.Form()); diff != "" {
		t.Error(diff)
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"nothing of it here":       "nothing of it here",
		"you sent 'top-secret'":    "you sent '[redacted]'",
		"you sent 'top-sec...'":    "you sent '[redacted]'",
		"top-secret and p4ssw0rds": "[redacted] and [redacted]",
		"xtop-secretx":             "x[redacted]x",
	} {
		if got := tokenendpoint.Redact(text, "top-secret", "", "p4ssw0rds"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
