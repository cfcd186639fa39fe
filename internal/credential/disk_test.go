//go:build unix

package credential_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/test/testkit"
)

func TestWhatIsOnDisk(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	info, err := os.Lstat(w.file())
	w.must(err)
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	data, err := os.ReadFile(w.file())
	w.must(err)
	if !bytes.HasPrefix(data, []byte("credence-credential/v1 sha256:")) {
		t.Errorf("the file begins %.40q", data)
	}
}

// An untrusted file is ignored, with a notice, and replaced.
func TestDamagedFilesAreReplaced(t *testing.T) {
	edit := func(change func([]byte) []byte) func(string, []byte) error {
		return func(path string, data []byte) error { return os.WriteFile(path, change(data), 0o600) }
	}
	cases := map[string]func(path string, data []byte) error{
		"empty":           edit(func([]byte) []byte { return nil }),
		"zeros":           edit(func(data []byte) []byte { return make([]byte, len(data)) }),
		"half":            edit(func(data []byte) []byte { return data[:len(data)/2] }),
		"more":            edit(func(data []byte) []byte { return append(data, '\n') }),
		"a flipped bit":   edit(func(data []byte) []byte { return bytes.Replace(data, []byte("token-1"), []byte("token-0"), 1) }),
		"another version": edit(func(data []byte) []byte { return bytes.Replace(data, []byte("/v1 "), []byte("/v2 "), 1) }),
		"something else":  edit(func([]byte) []byte { return []byte(`{"token":"token-9"}`) }),
		"open to others":  func(path string, _ []byte) error { return os.Chmod(path, 0o644) },
		"a link": func(path string, _ []byte) error {
			if err := os.Rename(path, path+".moved"); err != nil {
				return err
			}
			return os.Symlink(path+".moved", path)
		},
	}
	for what, damage := range cases {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.want(1, "token-1")
			data, err := os.ReadFile(w.file())
			w.must(err)
			w.must(damage(w.file(), data))
			if list := w.list(); len(list) != 1 || list[0].Problem == nil || list[0].Token {
				t.Errorf("listed: %+v", list)
			}
			w.want(2, "token-2")
			w.shown("is not used, and will be replaced", w.file())
			w.want(3, "token-2")
			w.quiet()
		})
	}
}

// The file of one key is not one of another, though it was written by us.
func TestFileOfAnotherKey(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	other := renamed{w.authority}
	w.must(os.Rename(w.file(), w.fileOf(other)))
	testkit.Must(t, testkit.Err(w.provider(client(2)).Serve(t.Context(), other, interactively())))
	if w.authority.logins != 2 {
		t.Errorf("%d logins", w.authority.logins)
	}
	w.shown("is not used")
}

type renamed struct{ *authority }

func (renamed) Key() map[string]string { return map[string]string{"source": "another"} }

// Without a lock, the stored credential is served, and a new one is obtained, but the state stays untouched: its use could not be
// recorded for the next process.
func TestWithoutLock(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.must(os.Remove(w.file() + ".lock"))
	free := w.block(".lock")
	w.want(2, "token-1")
	w.quiet()
	w.pass(time.Hour - time.Second)
	w.want(3, "token-2")
	w.shown("nothing can be kept")
	if w.authority.refreshes != 0 || w.authority.logins != 2 {
		t.Errorf("%d refreshes, %d logins", w.authority.refreshes, w.authority.logins)
	}
	w.authority.down = errDown
	w.want(4, "token-1")
	w.shown("connection refused", "served is the credential that is kept")
	w.authority.down = nil
	free()
	w.want(5, "token-3")
	if w.authority.refreshes != 1 {
		t.Errorf("%d refreshes: the state was to stay", w.authority.refreshes)
	}
}

// Where nothing can be written the state stays as well, and the credential is served.
func TestWithoutRoom(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.pass(time.Hour)
	free := w.block(".tmp")
	w.want(2, "token-2")
	w.shown("is not used, since no new one could be kept", "nothing could be kept")
	if w.authority.refreshes != 0 {
		t.Error("a state was used whose successor could not be kept")
	}
	w.wantError(3, silently(), credential.ErrNeedsPerson)
	free()
	w.want(4, "token-3")
	if w.authority.refreshes != 1 || w.authority.logins != 2 {
		t.Errorf("%d refreshes, %d logins", w.authority.refreshes, w.authority.logins)
	}
}

// If writing fails although there was space a moment ago, the state that is used up is removed: it is never used again.
func TestStateThatIsUsedUpAndCouldNotBeReplaced(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.pass(time.Hour)
	var free func()
	w.authority.during = func() {
		// The reserved space has gone: the file is not there any more.
		w.must(os.Remove(w.file() + ".tmp"))
		free = w.block(".tmp")
	}
	w.want(2, "token-2")
	w.shown("nothing could be kept")
	w.authority.during = nil
	if _, err := os.Stat(w.file()); err == nil {
		t.Error("the used state is still there")
	}
	free()
	w.want(3, "token-3")
	if w.authority.refreshes != 1 || w.authority.logins != 2 {
		t.Errorf("%d refreshes, %d logins", w.authority.refreshes, w.authority.logins)
	}
}

// A folder that cannot be made is done without.
func TestFolderThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(w.folder, nil, 0o600))
	w.folder += "/below/a/file"
	w.want(1, "token-1")
	w.shown("nothing can be kept")
}

// A login ahead of time is for storing: where that is impossible, the user is not prompted.
func TestRenewWhereNothingCanBeKept(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, nil, 0o600))
	for _, folder := range []string{"", filepath.Join(file, "folder")} {
		p := w.provider(client(1))
		p.Folder = folder
		if _, err := p.Renew(t.Context(), w.authority, interactively()); !errors.Is(err, credential.ErrNotKept) || w.authority.attempts != 0 {
			t.Errorf("in %q: %v, %d attempts", folder, err, w.authority.attempts)
		}
	}
}

func TestListAndRemove(t *testing.T) {
	w := newWorld(t)
	if list := w.list(); list != nil {
		t.Errorf("listed: %v", list)
	}
	if _, err := os.Stat(w.folder); err == nil {
		t.Error("listing made the folder")
	}
	w.want(1, "token-1")
	list := w.list()
	if len(list) != 1 || list[0].Key["source"] != "authority" || !list[0].Token || list[0].Certificate || !list[0].Renewable ||
		!list[0].Expires.Equal(w.clock.Add(time.Hour)) || !list[0].Obtained.Equal(w.clock) || list[0].Failure != nil {
		t.Fatalf("listed: %+v", list)
	}
	removed, err := credential.Remove(t.Context(), w.folder, list[0].Name)
	w.must(err)
	if string(removed.State) != "1" || removed.Credential.Token.Reveal() != "token-1" {
		t.Errorf("removed: %v", removed)
	}
	if files, err := os.ReadDir(w.folder); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
	if removed, err := credential.Remove(t.Context(), w.folder, list[0].Name); err != nil || removed != nil {
		t.Errorf("remove again: %v, %v", removed, err)
	}
	w.want(1, "token-2")
	if w.authority.logins != 2 {
		t.Errorf("%d logins", w.authority.logins)
	}
}

// A killed process's leftover of a first credential is found, so that a logout removes it.
func TestLeftoverIsListedAndRemoved(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	file := filepath.Join(w.folder, string(w.list()[0].Name))
	w.must(os.Rename(file, file+".tmp"))
	folder, err := cache.Open(w.folder)
	w.must(err)
	lock, err := folder.Lock(t.Context(), cache.Name(filepath.Base(file)), cache.Wait{})
	w.must(err)
	if list := w.list(); len(list) != 0 {
		t.Errorf("listed while a process is at work: %+v", list)
	}
	lock.Release()
	w.must(folder.Close())
	list := w.list()
	if len(list) != 1 || list[0].Problem == nil {
		t.Fatalf("listed: %+v", list)
	}
	if removed, err := credential.Remove(t.Context(), w.folder, list[0].Name); err != nil || removed != nil {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if files, err := os.ReadDir(w.folder); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// Whatever is kept or shown of a failure, its attempts are listed without secrets.
func TestNoSecretIsListed(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	w.authority.down = errDown
	w.pass(2 * time.Hour)
	w.wantError(2, interactively(), errDown)
	list := w.list()
	if len(list) != 1 || list[0].Failure == nil || list[0].Failure.Class != credential.Outage || !strings.Contains(list[0].Failure.Message, "refused") {
		t.Errorf("listed: %+v", list)
	}
}

func TestUnsafeFolderIsRefused(t *testing.T) {
	w := newWorld(t)
	w.must(os.Mkdir(w.folder, 0o700))
	w.must(os.Chmod(w.folder, 0o777))
	w.wantError(1, interactively(), cache.ErrUnsafe)
	if w.authority.attempts != 0 {
		t.Error("the source was called")
	}
}
