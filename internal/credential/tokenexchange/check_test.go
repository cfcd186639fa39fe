package tokenexchange_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
	"github.com/credence-id/credence/internal/tokenendpoint"
	"github.com/credence-id/credence/test/testkit"
)

func TestSettingsThatAreRefused(t *testing.T) {
	cases := []struct {
		name string
		with func(*tokenexchange.Source)
		want string
	}{
		{"in the clear", func(s *tokenexchange.Source) { s.Endpoint = "http://sts.example.com/token" }, "must be https"},
		{"another scheme", func(s *tokenexchange.Source) { s.Endpoint = "ftp://sts.example.com/token" }, `"ftp"`},
		{"no URL", func(s *tokenexchange.Source) { s.Endpoint = "sts" }, "must be a URL"},
		{"a user", func(s *tokenexchange.Source) { s.Endpoint = "https://u:geheim@sts.example.com" }, "without a user"},
		{"a secret that is not used", func(s *tokenexchange.Source) { s.ClientSecretFile = "x" }, "is not to authenticate"},
		{"no secret", func(s *tokenexchange.Source) { s.Authentication, s.ClientID = tokenexchange.Basic, "c" }, "the file of its secret"},
		{"unknown authentication", func(s *tokenexchange.Source) { s.Authentication = "mtls" }, "none, basic and post"},
		{"a resource with a fragment", func(s *tokenexchange.Source) { s.Resources = []string{"https://a#b"} }, "fragment"},
		{"a relative resource", func(s *tokenexchange.Source) { s.Resources = []string{"/a"} }, "absolute"},
		{"two scopes", func(s *tokenexchange.Source) { s.Scopes = []string{"a b"} }, "not one scope"},
		{"two audiences in one", func(s *tokenexchange.Source) { s.Audiences = []string{"a\nb"} }, "more than one line"},
		{"no CA", func(s *tokenexchange.Source) { s.CAFile = put(t, "ca", "x") }, "no PEM certificate"},
		{"no CA file", func(s *tokenexchange.Source) { s.CAFile += ".none" }, "no such file"},
		{"another CA", func(s *tokenexchange.Source) { s.CAFile = "" }, "name the file with the certificate"},
		{"no subject token", func(s *tokenexchange.Source) { s.SubjectTokenFile += ".none" }, "no such file"},
		{"an expired subject token", func(s *tokenexchange.Source) {
			s.SubjectTokenFile = put(t, "token", jwt(fmt.Sprintf(`{"exp":%d}`, noon.Unix())))
		}, "expired at 2026-05-04T12:00:00Z"},
		{"no server", func(s *tokenexchange.Source) { s.Endpoint = "https://127.0.0.1:1/token" }, "connection refused"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(t)
			source := server.source()
			c.with(source)
			_, err := obtain(t, source)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, credential.ErrRefused) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(server.forms) != 0 {
				t.Error("something was sent")
			}
		})
	}
}

func TestSecretThatOthersCanReadIsRefused(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o660: false, 0o604: false} {
		server := newServer(t)
		source := server.source()
		source.Authentication, source.ClientID, source.ClientSecretFile = tokenexchange.Basic, "c", put(t, "secret", "geheim")
		testkit.Must(t, os.Chmod(source.ClientSecretFile, mode))
		_, err := obtain(t, source)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

// The key differs whenever the credential does, for whom it is included, and shows no secret.
func TestKey(t *testing.T) {
	changes := map[string]func(*tokenexchange.Source){
		"nothing":        func(*tokenexchange.Source) {},
		"endpoint":       func(s *tokenexchange.Source) { s.Endpoint += "x" },
		"token type":     func(s *tokenexchange.Source) { s.SubjectTokenType = tokenendpoint.IDToken },
		"requested type": func(s *tokenexchange.Source) { s.RequestedTokenType = tokenendpoint.IDToken },
		"resource":       func(s *tokenexchange.Source) { s.Resources = []string{"https://a"} },
		"audience":       func(s *tokenexchange.Source) { s.Audiences = []string{"https://a"} },
		"two audiences":  func(s *tokenexchange.Source) { s.Audiences = []string{"https://a", "b"} },
		"scope":          func(s *tokenexchange.Source) { s.Scopes = []string{"https://a"} },
		"client":         func(s *tokenexchange.Source) { s.ClientID = "c" },
		"authentication": func(s *tokenexchange.Source) { s.Authentication = tokenexchange.Basic },
		"secret":         func(s *tokenexchange.Source) { s.ClientSecretFile = "x" },
		"CA":             func(s *tokenexchange.Source) { s.CAFile = "x" },
		"subject":        func(s *tokenexchange.Source) { overwrite(t, s, jwt(`{"iss":"i","sub":"other"}`)) },
		"opaque":         func(s *tokenexchange.Source) { overwrite(t, s, "geheim") },
		"no token":       func(s *tokenexchange.Source) { s.SubjectTokenFile += ".none" },
	}
	path, seen := put(t, "token", subjectToken), map[cache.Name]string{}
	for name, change := range changes {
		source := &tokenexchange.Source{Endpoint: "https://sts", SubjectTokenFile: path}
		overwrite(t, source, subjectToken)
		change(source)
		key := source.Key()
		if other, found := seen[cache.NameOf(key)]; found {
			t.Errorf("%q has the key of %q: %v", name, other, key)
		}
		seen[cache.NameOf(key)] = name
		if text := fmt.Sprint(key); strings.Contains(text, "geheim") || strings.Contains(text, subjectToken) {
			t.Errorf("a secret in the key: %s", text)
		}
	}
	source := &tokenexchange.Source{Endpoint: "https://sts", SubjectTokenFile: path}
	overwrite(t, source, subjectToken)
	before := cache.NameOf(source.Key())
	overwrite(t, source, jwt(fmt.Sprintf(`{"iss":"https://issuer","sub":"system:serviceaccount:a:b","exp":%d}`, noon.Add(2*time.Hour).Unix())))
	if before != cache.NameOf(source.Key()) {
		t.Error("a renewed token of the same subject has another key")
	}
}

// Between the key and the exchange another subject's token may come into the file: its new token is not stored for the first.
func TestAnotherSubjectUnderTheSameKey(t *testing.T) {
	for name, tokens := range map[string][2]string{
		"another":           {subjectToken, jwt(`{"iss":"https://issuer","sub":"other"}`)},
		"none before":       {"", subjectToken},
		"another of no one": {"opaque", "opaque too"},
	} {
		server := newServer(t)
		source := server.source()
		overwrite(t, source, tokens[0])
		source.Key()
		overwrite(t, source, tokens[1])
		if _, err := obtain(t, source); err == nil || !strings.Contains(err.Error(), "another subject") {
			t.Errorf("%s: %v", name, err)
		}
		if len(server.forms) != 0 {
			t.Errorf("%s: something was sent", name)
		}
		source.Key()
		if _, err := obtain(t, source); err != nil {
			t.Errorf("%s: again: %v", name, err)
		}
	}
}

func overwrite(t *testing.T, source *tokenexchange.Source, token string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(source.SubjectTokenFile, []byte(token), 0o600))
}
