//go:build cgo

package pkcs11

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/pkcs11"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/test/testkit"
)

// A session that is over is opened again, and the request whose handshake it failed is sent by the new one.
func TestSessionIsOver(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.3": tls.VersionTLS13, "TLS 1.2": tls.VersionTLS12} {
		t.Run(name, func(t *testing.T) {
			w := newAwayWorld(t, version)
			w.works()
			raw := newSession(t, w.token)
			testkit.Must(t, raw.CloseAllSessions(raw.slot))
			w.clock.Advance(time.Second) // past the pause between two runs
			w.works()
			if runs := w.provider.runs.Load(); runs != 2 {
				t.Errorf("the token was opened %d times, want twice", runs)
			}
		})
	}
}

// A token that is taken away fails every request, with errors that name it, and none is sent as another user. Put back, it works.
func TestTokenIsTakenAway(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.3": tls.VersionTLS13, "TLS 1.2": tls.VersionTLS12} {
		t.Run(name, func(t *testing.T) {
			w := newAwayWorld(t, version)
			w.works()
			drawer := t.TempDir()
			testkit.Must(t, os.Rename(w.folder, filepath.Join(drawer, "token")))
			w.clock.Advance(time.Second) // past the pause between two runs
			var device pkcs11.Error
			if err := w.fails(); !errors.As(err, new(*execcredential.SignError)) || !errors.As(err, &device) || !strings.Contains(err.Error(), `open token "`) {
				t.Fatalf("error %v, want a SignError that has that of the driver, and that of the token", err)
			}
			for i := range int32(5) {
				w.clock.Advance(10 * time.Second)
				if err := w.fails(); w.provider.runs.Load() != i+3 || !strings.Contains(err.Error(), `open token "`+w.token.Name+`"`) {
					t.Fatalf("error %v, want that of the token, which was opened %d times", err, w.provider.runs.Load())
				}
				if err := w.fails(); !errors.As(err, new(*execcredential.BackoffError)) {
					t.Fatalf("error %v, want that the token is not opened again at once", err)
				}
			}
			testkit.Must(t, os.Rename(filepath.Join(drawer, "token"), w.folder))
			w.clock.Advance(time.Minute)
			w.works()
		})
	}
}

// awayWorld is a client whose token can be taken away.
type awayWorld struct {
	t        *testing.T
	token    *Token
	folder   string // of the token
	provider *counting
	clock    *exectest.Clock
	client   *http.Client
}

func newAwayWorld(t *testing.T, version uint16) *awayWorld {
	t.Helper()
	before := testkit.Need(filepath.Glob(filepath.Join(tokens, "*")))(t)
	w := &awayWorld{t: t, token: newToken(t, "P-256", "key"), clock: exectest.NewClock(time.Now())}
	enrol(t, w.token, "jane")
	after, err := filepath.Glob(filepath.Join(tokens, "*"))
	if err != nil || len(after) != len(before)+1 {
		t.Fatalf("%d tokens after %d, error %v", len(after), len(before), err)
	}
	for _, folder := range after {
		if !strings.Contains(strings.Join(before, " "), folder) {
			w.folder = folder
		}
	}
	w.provider = &counting{Provider: w.token}
	source := newPool(t, execcredential.Options{Clock: w.clock}).SourceOf(w.provider)
	w.client = &http.Client{Transport: source.Transport(base(t, version))}
	return w
}

func (w *awayWorld) works() {
	w.t.Helper()
	if user, err := whoami(w.t.Context(), w.client); err != nil || user.Username != "jane" {
		w.t.Fatalf("the server saw %q, error %v", user.Username, err)
	}
}

// fails sends a request that must not arrive: an answer of whatever kind would be to another user.
func (w *awayWorld) fails() error {
	w.t.Helper()
	response, err := w.client.Get(shared.admin.Host + "/version")
	if err == nil {
		_ = response.Body.Close()
		w.t.Fatalf("the server answered %s", response.Status)
	}
	return err
}
