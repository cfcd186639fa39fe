package execcredential_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

const head = `"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"`

func withStatus(status string) string { return `{` + head + `,"status":` + status + `}` }

func quoted(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}

// malformed is every kind of output that must not become a credential, each with the Problem of its error.
func malformed(t testing.TB) map[string]struct {
	output string
	want   execcredential.Problem
} {
	type bad = struct {
		output string
		want   execcredential.Problem
	}
	authority := exectest.NewAuthority(t)
	certificate, key := authority.Issue("jane", start.Add(-time.Hour), start.Add(time.Hour))
	other, _ := authority.Issue("jane", start.Add(-time.Hour), start.Add(time.Hour))
	expired, expiredKey := authority.Issue("jane", start.Add(-2*time.Hour), start.Add(-time.Hour))
	future, futureKey := authority.Issue("jane", start.Add(time.Hour), start.Add(2*time.Hour))
	pair := func(certificate, key string) string {
		return withStatus(fmt.Sprintf(`{"clientCertificateData":%s,"clientKeyData":%s}`, quoted(certificate), quoted(key)))
	}
	expires := func(timestamp string) string {
		return withStatus(`{"token":"s3cr3t-token-value","expirationTimestamp":` + timestamp + `}`)
	}
	good := withStatus(`{"token":"s3cr3t-token-value"}`)
	return map[string]bad{
		"empty":                     {"", execcredential.EmptyOutput},
		"white space":               {" \n\t ", execcredential.EmptyOutput},
		"only a byte order mark":    {"\xef\xbb\xbf", execcredential.EmptyOutput},
		"null":                      {"null\n", execcredential.NullOutput},
		"text":                      {"please log in first", execcredential.NotAnObject},
		"array":                     {"[" + good + "]", execcredential.NotAnObject},
		"string":                    {`"s3cr3t-token-value"`, execcredential.NotAnObject},
		"number":                    {`42`, execcredential.NotAnObject},
		"YAML without apiVersion":   {"token: s3cr3t-token-value", execcredential.NotAnObject},
		"log before":                {"I1121 starting\n" + good, execcredential.TextBeforeObject},
		"log after":                 {good + "\nI1121 done", execcredential.DataAfterObject},
		"two documents":             {good + "\n" + good, execcredential.DataAfterObject},
		"cut off":                   {good[:len(good)-5], execcredential.BadSyntax},
		"not quoted":                {`{token: "s3cr3t-token-value"`, execcredential.BadSyntax},
		"token twice":               {withStatus(`{"token":"a","token":"s3cr3t-token-value"}`), execcredential.DuplicateField},
		"status twice":              {`{` + head + `,"status":{},"status":{}}`, execcredential.DuplicateField},
		"no apiVersion":             {`{"kind":"ExecCredential","status":{"token":"s3cr3t-token-value"}}`, execcredential.NoVersion},
		"empty object":              {`{}`, execcredential.NoVersion},
		"v1beta1":                   {strings.Replace(good, "/v1", "/v1beta1", 1), execcredential.WrongVersion},
		"v2":                        {strings.Replace(good, "/v1", "/v2", 1), execcredential.WrongVersion},
		"wrong group":               {strings.Replace(good, "client.authentication.k8s.io", "authentication.k8s.io", 1), execcredential.WrongGroup},
		"wrong kind":                {strings.Replace(good, "ExecCredential", "TokenReview", 1), execcredential.WrongKind},
		"kind is a number":          {`{"apiVersion":"client.authentication.k8s.io/v1","kind":7}`, execcredential.WrongType},
		"no status":                 {`{` + head + `}`, execcredential.NoStatus},
		"null status":               {withStatus(`null`), execcredential.NoStatus},
		"status is a string":        {withStatus(`"s3cr3t-token-value"`), execcredential.WrongType},
		"empty status":              {withStatus(`{}`), execcredential.NoCredential},
		"empty token":               {withStatus(`{"token":""}`), execcredential.NoCredential},
		"wrong case":                {withStatus(`{"Token":"s3cr3t-token-value"}`), execcredential.NoCredential},
		"token is a number":         {withStatus(`{"token":12345678}`), execcredential.WrongType},
		"timestamp empty":           {expires(`""`), execcredential.BadTimestamp},
		"timestamp without zone":    {expires(`"2030-01-01T13:00:00"`), execcredential.BadTimestamp},
		"timestamp date only":       {expires(`"2030-01-01"`), execcredential.BadTimestamp},
		"timestamp lower case":      {expires(`"2030-01-01t13:00:00z"`), execcredential.BadTimestamp},
		"timestamp seconds":         {expires(`1893502800`), execcredential.BadTimestamp},
		"token ends with newline":   {withStatus(`{"token":"s3cr3t-token-value\n"}`), execcredential.UnsafeToken},
		"newline in the token":      {withStatus(`{"token":"s3cr3t\r\nX-Injected: 1"}`), execcredential.UnsafeToken},
		"token ends with a space":   {withStatus(`{"token":"s3cr3t-token-value "}`), execcredential.UnsafeToken},
		"space in the token":        {withStatus(`{"token":"s3cr3t token"}`), execcredential.UnsafeToken},
		"token with Bearer":         {withStatus(`{"token":"Bearer s3cr3t-token-value"}`), execcredential.UnsafeToken},
		"token not ASCII":           {withStatus(`{"token":"s3cr3t-töken-value"}`), execcredential.UnsafeToken},
		"certificate only":          {pair(certificate, ""), execcredential.CertificateOnly},
		"key only":                  {pair("", key), execcredential.KeyOnly},
		"token and key":             {withStatus(`{"token":"s3cr3t-token-value","clientKeyData":` + quoted(key) + `}`), execcredential.KeyOnly},
		"certificate is garbage":    {pair("garbage", key), execcredential.BadCertificate},
		"certificate garbage PEM":   {pair("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key), execcredential.BadCertificate},
		"certificate base64 PEM":    {pair(base64.StdEncoding.EncodeToString([]byte(certificate)), key), execcredential.BadCertificate},
		"key is garbage":            {pair(certificate, "garbage"), execcredential.BadKey},
		"key garbage PEM":           {pair(certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), execcredential.BadKey},
		"key base64 PEM":            {pair(certificate, base64.StdEncoding.EncodeToString([]byte(key))), execcredential.BadKey},
		"swapped":                   {pair(key, certificate), execcredential.BadCertificate},
		"mismatched pair":           {pair(other, key), execcredential.MismatchedPair},
		"expired certificate":       {pair(expired, expiredKey), execcredential.CertificateExpired},
		"certificate of tomorrow":   {pair(future, futureKey), execcredential.CertificateNotValid},
		"good token, bad pair":      {withStatus(`{"token":"s3cr3t-token-value","clientCertificateData":"x","clientKeyData":"y"}`), execcredential.BadCertificate},
		"YAML of the wrong kind":    {"apiVersion: client.authentication.k8s.io/v1\nkind: Secret\n", execcredential.WrongKind},
		"nested far too deeply":     {strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), execcredential.BadSyntax},
		"YAML that refers itself":   {"apiVersion: client.authentication.k8s.io/v1\nstatus: &a\n  token: *a\n", execcredential.NotAnObject},
		"private key in apiVersion": {`{"apiVersion":` + quoted(key) + `}`, execcredential.WrongGroup},
	}
}

func TestMalformedOutput(t *testing.T) {
	for name, bad := range malformed(t) {
		t.Run(name, func(t *testing.T) {
			credential, err := execcredential.Decode([]byte(bad.output), execcredential.V1, start)
			if credential != nil || !errors.Is(err, bad.want) {
				t.Fatalf("got %v and error %v, want %q", credential, err, bad.want)
			}
			var typed *execcredential.OutputError
			if !errors.As(err, &typed) || typed.Problem != bad.want {
				t.Errorf("error is %#v", err)
			}
			for _, secret := range []string{"s3cr3t", "PRIVATE KEY-----\nMI"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("error %q shows the secret", err)
				}
			}
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	bad := malformed(t)
	for name, want := range map[string]string{
		"v1beta1":                 "expected client.authentication.k8s.io/v1, got client.authentication.k8s.io/v1beta1",
		"no apiVersion":           "expected client.authentication.k8s.io/v1, got none",
		"wrong kind":              "expected ExecCredential, got TokenReview",
		"log before":              "messages belong on standard error",
		"token with Bearer":       `begins with "Bearer "`,
		"token ends with newline": "ends with a newline",
		"token ends with a space": "ends with white space",
		"certificate base64 PEM":  "clientCertificateData is base64 of PEM",
		"key base64 PEM":          "clientKeyData is base64 of PEM",
		"expired certificate":     "2030-01-01T11:00:00Z",
		"wrong case":              "case-sensitive",
	} {
		_, err := execcredential.Decode([]byte(bad[name].output), execcredential.V1, start)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", name, err, want)
		}
	}
}

func TestGoodOutput(t *testing.T) {
	certificate, key := exectest.NewAuthority(t).Issue("jane", start.Add(-time.Hour), start.Add(time.Hour))
	early, earlyKey := exectest.NewAuthority(t).Issue("jane", start.Add(30*time.Second), start.Add(time.Hour))
	noon := time.Date(2030, 1, 1, 12, 0, 0, 500_000_000, time.UTC)
	for name, good := range map[string]struct {
		output      string
		token       string
		expires     time.Time
		certificate bool
	}{
		"token":                  {output: withStatus(`{"token":"abc"}`), token: "abc"},
		"without kind":           {output: `{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"abc"}}`, token: "abc"},
		"YAML":                   {output: "apiVersion: client.authentication.k8s.io/v1\nstatus:\n  token: abc\n  expirationTimestamp: 2030-01-01T12:00:00.5Z\n", token: "abc", expires: noon},
		"byte order mark":        {output: "\xef\xbb\xbf" + withStatus(`{"token":"abc"}`), token: "abc"},
		"spec and unknown":       {output: `{` + head + `,"spec":{"interactive":true},"metadata":{},"status":{"token":"abc","new":1}}`, token: "abc"},
		"expiry":                 {output: withStatus(`{"token":"abc","expirationTimestamp":"2030-01-01T14:00:00.5+02:00"}`), token: "abc", expires: noon},
		"null expiry":            {output: withStatus(`{"token":"abc","expirationTimestamp":null}`), token: "abc"},
		"zero expiry":            {output: withStatus(`{"token":"abc","expirationTimestamp":"0001-01-01T00:00:00Z"}`), token: "abc"},
		"pair":                   {output: withStatus(fmt.Sprintf(`{"clientCertificateData":%s,"clientKeyData":%s}`, quoted(certificate), quoted(key))), certificate: true},
		"clock of the issuer":    {output: withStatus(fmt.Sprintf(`{"clientCertificateData":%s,"clientKeyData":%s}`, quoted(early), quoted(earlyKey))), certificate: true},
		"token with certificate": {output: withStatus(fmt.Sprintf(`{"token":"abc","clientCertificateData":%s,"clientKeyData":%s}`, quoted(certificate), quoted(key))), token: "abc", certificate: true},
	} {
		t.Run(name, func(t *testing.T) {
			credential := need(execcredential.Decode([]byte(good.output), execcredential.V1, start))(t)
			if credential.Token() != good.token || !credential.Expires().Equal(good.expires) || (credential.Certificate() != nil) != good.certificate {
				t.Errorf("token %q, expires %v, certificate %v", credential.Token(), credential.Expires(), credential.Certificate() != nil)
			}
		})
	}
}

func TestCredentialsPrintRedacted(t *testing.T) {
	credential := need(execcredential.NewCredential(execcredential.Material{Token: "s3cr3t"}, start))(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, secret := range []any{credential, *credential, execcredential.Material{Token: "s3cr3t"}} {
			if got := fmt.Sprintf(verb, secret); got != "[redacted]" {
				t.Errorf("%s prints %q", verb, got)
			}
		}
	}
	for _, value := range []any{credential, *credential} {
		if got, err := json.Marshal(value); err == nil {
			t.Errorf("JSON of a %T is %s", value, got)
		}
	}
}
