//go:build unix

package oidc_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/test/testkit"
)

// To open a pipe is to wait for its writer, perhaps without end, and with the lock that others wait for.
func TestPipesAreNotRead(t *testing.T) {
	p := oidctest.Start(t, time.Now())
	pipe := filepath.Join(t.TempDir(), "pipe")
	testkit.Must(t, syscall.Mkfifo(pipe, 0o600))
	for name, change := range map[string]func(*oidc.Config){
		"secret":      func(c *oidc.Config) { c.ClientSecretFile = pipe },
		"authorities": func(c *oidc.Config) { c.CAFile = pipe },
	} {
		source, failed := newSource(t, p, change), make(chan error, 1)
		go func() {
			_, _, err := source.Obtain(t.Context(), credential.Request{ExecInfo: credential.ExecInfo{Interactive: true}, Terminal: &terminal{}})
			failed <- err
		}()
		select {
		case err := <-failed:
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it waits for a writer", name)
		}
	}
}

// As at a token exchange, the secret of a client is not one that others can read.
func TestClientSecretThatOthersCanReadIsRefused(t *testing.T) {
	p := oidctest.Start(t, start)
	secret := filepath.Join(t.TempDir(), "secret")
	testkit.Must(t, os.WriteFile(secret, []byte("hunter2"), 0o644))
	source := newSource(t, p, func(c *oidc.Config) { c.ClientSecretFile = secret })
	wantError(t, obtain(t, source, &terminal{}, nil, true).err, "outage", "others have access")
}
