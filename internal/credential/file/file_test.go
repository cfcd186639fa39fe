package file_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
	"github.com/credence-id/credence/test/testkit"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func jwt(expires time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":"geheim","exp":%d}`, expires.Unix())) + ".c2ln"
}

func source(path string) *file.Source {
	return &file.Source{Path: path, Now: func() time.Time { return noon }}
}

type silent struct{ testing.TB }

func (s silent) Notice(format string, args ...any) { s.Errorf("shown: "+format, args...) }
func (silent) OpenURL(string) error                { return nil }

func put(t *testing.T, path, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// As the kubelet renews it: behind two links, one of which is replaced.
func TestProjectedTokenIsReadAnewForEachAsk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	for i, expires := range []time.Time{noon.Add(time.Hour), noon.Add(2 * time.Hour)} {
		version := filepath.Join(dir, fmt.Sprintf("..version%d", i))
		testkit.Must(t, os.Mkdir(version, 0o700))
		put(t, filepath.Join(version, "token"), jwt(expires)+"\n")
		_ = os.Remove(filepath.Join(dir, "..data"))
		testkit.Must(t, os.Symlink(version, filepath.Join(dir, "..data")))
		if i == 0 {
			testkit.Must(t, os.Symlink(filepath.Join("..data", "token"), path))
		}
		folder := filepath.Join(dir, "cache")
		provider := credential.Provider{Folder: folder, Now: func() time.Time { return noon }, Terminal: silent{t}, Margin: -1}
		got, err := provider.Serve(t.Context(), source(path), credential.ExecInfo{APIVersion: credential.V1})
		if err != nil || got.Token.Reveal() != jwt(expires) || !got.Expires.Equal(expires) {
			t.Errorf("got a token that expires at %s, %v; want %s", got.Expires, err, expires)
		}
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Error("something was kept")
		}
	}
}

func TestTokenWithoutExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	put(t, path, " opaque\r\n")
	got, _, err := source(path).Obtain(t.Context(), credential.Request{})
	if err != nil || got.Token.Reveal() != "opaque" || !got.Expires.IsZero() {
		t.Errorf("got %q, expires %s, %v", got.Token.Reveal(), got.Expires, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		make func(path string)
		want string
	}{
		"none":      {func(string) {}, "no such file"},
		"a folder":  {func(path string) { _ = os.Mkdir(path, 0o700) }, "not a regular file"},
		"empty":     {func(path string) { put(t, path, "\n") }, "is empty"},
		"no token":  {func(path string) { put(t, path, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n") }, "something else than one token"},
		"too large": {func(path string) { put(t, path, strings.Repeat("a", 256<<10+1)) }, "larger than"},
		"expired":   {func(path string) { put(t, path, jwt(noon)) }, "expired at 2026-05-04T12:00:00Z"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			c.make(path)
			got, state, err := source(path).Obtain(t.Context(), credential.Request{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got expires %s, %v; want %q", got.Expires, err, c.want)
			}
			if state != nil || !got.Token.IsZero() || err != nil && strings.Contains(err.Error(), "geheim") {
				t.Error("something of a file that was refused is returned")
			}
			if errors.Is(err, credential.ErrRefused) || errors.Is(err, credential.ErrNeedsPerson) {
				t.Errorf("not an outage: %v", err)
			}
		})
	}
	if _, err := file.Read(""); err == nil {
		t.Error("no file was read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := source("x").Obtain(ctx, credential.Request{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
