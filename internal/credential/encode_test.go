package credential_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

func TestEncode(t *testing.T) {
	berlin := time.FixedZone("", 2*3600)
	cases := []struct {
		name, version string
		credential    credential.Credential
		want          string
	}{
		{"token", credential.V1, credential.Credential{Token: credential.NewSecret("a.b-c_~+/=<&>")},
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{},"status":{"token":"a.b-c_~+/=<&>"}}`},
		{"expiry in UTC, never late", credential.V1Beta1,
			credential.Credential{Token: credential.NewSecret("t"), Expires: time.Date(2026, 1, 2, 1, 4, 5, 999999999, berlin)},
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{},"status":{"expirationTimestamp":"2026-01-01T23:04:05Z","token":"t"}}`},
		{"certificate", credential.V1, credential.Credential{CertificatePEM: []byte("c\n"), KeyPEM: credential.NewSecret("k\n")},
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{},"status":{"clientCertificateData":"c\n","clientKeyData":"k\n"}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.credential.Encode(c.version)
			if err != nil || string(got) != c.want+"\n" {
				t.Errorf("encoded %s, %v\nwant    %s", got, err, c.want)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	token := func(text string) credential.Credential {
		return credential.Credential{Token: credential.NewSecret(text)}
	}
	cases := []struct {
		name, version string
		credential    credential.Credential
		want          string
	}{
		{"unknown version", "client.authentication.k8s.io/v2", token("t"), "known are client.authentication.k8s.io/v1 and"},
		{"no version", "", token("t"), "no apiVersion"},
		{"nothing", credential.V1, credential.Credential{Expires: time.Now()}, "neither"},
		{"certificate alone", credential.V1, credential.Credential{CertificatePEM: []byte("c")}, "without its private key"},
		{"key alone", credential.V1, credential.Credential{KeyPEM: credential.NewSecret("geheim")}, "without its certificate"},
		{"token and certificate alone", credential.V1, credential.Credential{Token: credential.NewSecret("t"), CertificatePEM: []byte("c")}, "without its private key"},
		{"line feed", credential.V1, token("geheim\n"), "byte 7 of 7"},
		{"header injection", credential.V1, token("a\r\nX-Remote-User: admin"), "byte 2"},
		{"space", credential.V1, token("Bearer geheim"), "byte 7"},
		{"not ASCII", credential.V1, token("gehéim"), "byte 4"},
		{"delete", credential.V1, token("\x7f"), "byte 1"},
		{"binary certificate", credential.V1, credential.Credential{CertificatePEM: []byte("\x30\x82"), KeyPEM: credential.NewSecret("k")}, "not PEM"},
		{"before all time", credential.V1, credential.Credential{Token: credential.NewSecret("t"), Expires: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)}, "expiry"},
		{"too large", credential.V1, token(strings.Repeat("a", 1<<20)), "more than clients take"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := c.credential.Encode(c.version)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if out != nil {
				t.Errorf("printed %q with an error", out)
			}
			if err != nil && strings.Contains(err.Error(), "geh") {
				t.Errorf("the error quotes the secret: %v", err)
			}
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := credential.Credential{Token: credential.NewSecret("geheim"), KeyPEM: credential.NewSecret("geheim")}
	entry := credential.Entry{Key: map[string]string{"source": "x"}, Credential: c, State: json.RawMessage(`"geheim"`)}
	request := credential.Request{Previous: &entry}
	var logged strings.Builder
	logger := slog.New(slog.NewJSONHandler(&logged, nil))
	logger.Info("x", "secret", c.Token, "credential", c, "entry", entry, "pointer", &entry)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "secret", c.Token, "credential", c, "entry", entry, "pointer", &entry)
	texts := []string{logged.String(), errors.Join(fmt.Errorf("%v %s %q", c.Token, c, entry)).Error()}
	for _, value := range []any{c.Token, &c.Token, c, &c, entry, &entry, request, []any{c, entry}, map[string]any{"x": c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
	}
	for _, value := range []any{c, &c, entry, &entry} {
		text := testkit.Need(json.Marshal(value))(t)
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		// In hexadecimal, decimal, and as it is.
		for _, shown := range []string{"geheim", "67656865696d", "67 65 68", "103 101 104", "Z2VoZWlt"} {
			if strings.Contains(text, shown) {
				t.Errorf("printed: %s", text)
			}
		}
	}
	if c.Token.Reveal() != "geheim" || (credential.Secret{}).Reveal() != "" || !(credential.Secret{}).IsZero() {
		t.Error("secrets have not their text")
	}
}
