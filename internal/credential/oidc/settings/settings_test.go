package settings_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/test/testkit"
)

func TestKey(t *testing.T) {
	base := settings.Settings{Issuer: "https://login.example.com", ClientID: "kubernetes", Scopes: []string{"groups", "email"}}
	key := func(change func(*settings.Settings)) string {
		config := base
		change(&config)
		text := testkit.Need(json.Marshal(config.Key()))(t)
		return string(text)
	}
	same := key(func(*settings.Settings) {})
	for name, change := range map[string]func(*settings.Settings){
		"order of scopes": func(s *settings.Settings) { s.Scopes = []string{"email", "groups", "email"} },
		"default":         func(s *settings.Settings) { s.Present = settings.IDToken },
		"flow":            func(s *settings.Settings) { s.Flow = settings.Device },
		"ports":           func(s *settings.Settings) { s.Ports = []int{8000} },
		"timeout":         func(s *settings.Settings) { s.LoginTimeout = time.Hour },
		"secret":          func(s *settings.Settings) { s.ClientSecretFile = "/secret" },
	} {
		if diff := cmp.Diff(same, key(change)); diff != "" {
			t.Errorf("%s: another key: %s", name, diff)
		}
	}
	for name, change := range map[string]func(*settings.Settings){
		"issuer":     func(s *settings.Settings) { s.Issuer += "/" },
		"client":     func(s *settings.Settings) { s.ClientID = "other" },
		"scopes":     func(s *settings.Settings) { s.Scopes = nil },
		"token":      func(s *settings.Settings) { s.Present = settings.AccessToken },
		"parameters": func(s *settings.Settings) { s.Parameters = map[string]string{"audience": "x"} },
		"trust":      func(s *settings.Settings) { s.CAFile = "/ca.pem" },
	} {
		if key(change) == same {
			t.Errorf("%s: the same key", name)
		}
	}
}

func TestWithCluster(t *testing.T) {
	base := settings.Settings{Issuer: "https://a.example.com", Parameters: map[string]string{"x": "1"}, CAFile: "ca.pem"}
	for raw, want := range map[string]settings.Settings{
		``:                          base,
		`null`:                      base,
		`"text"`:                    base,
		`{"other":{"issuer":"b"}}`:  base,
		`{"oidc":{}}`:               base,
		`{"oidc":{"clientID":"b"}}`: {Issuer: base.Issuer, ClientID: "b", Parameters: base.Parameters, CAFile: base.CAFile},
		`{"oidc":{"issuer":"https://a.example.com","clientID":"b","scopes":["two"],"present":"access","parameters":{"y":"2","x":"1"}}}`: {
			Issuer: base.Issuer, ClientID: "b", Scopes: []string{"two"}, Present: settings.AccessToken, Parameters: map[string]string{"x": "1", "y": "2"}, CAFile: base.CAFile},
	} {
		got, err := base.WithCluster(json.RawMessage(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
	if len(base.Parameters) != 1 {
		t.Error("the parameters of the configuration were changed")
	}
	for _, raw := range []string{`{"oidc":{"caFile":"/etc/passwd"}}`, `{"oidc":7}`, `{"oidc":{"issuer":{}}}`} {
		if _, err := base.WithCluster(json.RawMessage(raw)); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// The client's cluster may be malicious: it must not get the token of another one.
func TestAClusterSaysNothingElse(t *testing.T) {
	base := settings.Settings{
		Issuer: "https://a.example.com", ClientID: "a", Scopes: []string{"one"}, Present: settings.IDToken, Parameters: map[string]string{"audience": "1"},
	}
	for _, raw := range []string{
		`{"issuer":"https://b.example.com"}`, `{"clientID":"b"}`, `{"scopes":["two"]}`, `{"scopes":[]}`, `{"present":"access"}`, `{"parameters":{"audience":"2"}}`,
	} {
		if got, err := base.WithCluster(json.RawMessage(`{"oidc":` + raw + `}`)); err == nil {
			t.Errorf("%s is taken: %+v", raw, got)
		}
	}
}
