package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/test/testkit"
)

func (p *provider) source(t *testing.T, change func(*oidc.Config)) *oidc.Source {
	t.Helper()
	// The provider gives refresh tokens only to those who consent (OpenID Connect Core 1.0 section 11).
	var config oidc.Config
	config.Issuer, config.ClientID, config.CAFile = p.issuer, "kubernetes", p.caFile
	config.Parameters, config.LoginTimeout = map[string]string{"prompt": "consent"}, 9*time.Minute
	if change != nil {
		change(&config)
	}
	return testkit.Need(oidc.New(config))(t)
}

func obtain(t *testing.T, s *oidc.Source, who screen, state json.RawMessage) (credential.Credential, json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	request := credential.Request{
		ExecInfo: credential.ExecInfo{APIVersion: credential.V1, Interactive: who.person != nil},
		Terminal: who,
		Keep:     func(json.RawMessage) error { return nil },
	}
	if state != nil {
		request.Previous = &credential.Entry{State: state}
	}
	return s.Obtain(ctx, request)
}

// A person logs in with a browser, stays logged in by refresh tokens that are good once, and logs out.
func TestLogIn(t *testing.T) {
	p := theProvider(t)
	for client, change := range map[string]func(*oidc.Config){
		"public": nil,
		"confidential": func(c *oidc.Config) {
			c.ClientID, c.ClientSecretFile = "confidential", filepath.Join(t.TempDir(), "secret")
			testkit.Must(t, os.WriteFile(c.ClientSecretFile, []byte("only-for-tests\n"), 0o600))
		},
	} {
		t.Run(client, func(t *testing.T) {
			s := p.source(t, change)
			alice := screen{person: &person{t: t, does: "agree"}}
			got, state, err := obtain(t, s, alice, nil)
			testkit.Must(t, err)
			if got.Token.IsZero() || time.Until(got.Expires) < 4*time.Minute || time.Until(got.Expires) > 6*time.Minute {
				t.Errorf("expires %s", got.Expires)
			}
			shown := alice.page()
			if !strings.Contains(shown.Text, "You are logged in") || !strings.HasPrefix(shown.URL, "http://127.0.0.1:") {
				t.Errorf("the browser shows %q at %s", shown.Text, shown.URL)
			}
			for _, complaint := range shown.Complaints {
				if !strings.Contains(complaint, "favicon") && !strings.Contains(complaint, "404") {
					t.Errorf("the browser complains: %s", complaint)
				}
			}

			nobody := screen{}
			for range 2 {
				before := state
				if got, state, err = obtain(t, s, nobody, state); err != nil {
					t.Fatal(err)
				}
				if client == "public" && string(before) == string(state) {
					t.Error("the refresh token that was used is kept")
				}
			}
			testkit.Must(t, s.Revoke(t.Context(), state))
			_, forgotten, err := obtain(t, s, nobody, state)
			if !errors.Is(err, credential.ErrNeedsPerson) || string(forgotten) != "null" {
				t.Errorf("after the logout: %v", err)
			}
		})
	}
}

func TestThePersonSaysNo(t *testing.T) {
	p := theProvider(t)
	alice := screen{person: &person{t: t, does: "refuse"}}
	_, _, err := obtain(t, p.source(t, nil), alice, nil)
	if !errors.Is(err, credential.ErrRefused) || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("error %v", err)
	}
	if shown := alice.page(); !strings.Contains(shown.Text, "You are not logged in") {
		t.Errorf("the browser shows %q", shown.Text)
	}
}

// There is no browser beside the client: the person takes the one of another device.
func TestDeviceCode(t *testing.T) {
	p := theProvider(t)
	alice := screen{person: &person{t: t, does: "agree"}, noBrowser: true}
	s := p.source(t, nil)
	_, state, err := obtain(t, s, alice, nil)
	testkit.Must(t, err)
	if shown := alice.page(); !strings.Contains(shown.Text, "Sign-in Success") {
		t.Errorf("the browser shows %q", shown.Text)
	}
	if _, _, err := obtain(t, s, screen{}, state); err != nil {
		t.Errorf("refresh: %v", err)
	}
}
