//go:build unix

package keystore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

func TestDirectory(t *testing.T) {
	keystoretest.Run(t, func(t *testing.T) func() keystore.Store {
		path := filepath.Join(t.TempDir(), "keys")
		return func() keystore.Store { return openDirectory(t, path) }
	})
}

func openDirectory(t *testing.T, path string) *keystore.Directory {
	t.Helper()
	store := testkit.Need(keystore.OpenDirectory(path))(t)
	return store
}

// filled returns a directory that holds the first test ring.
func filled(t *testing.T) (*keystore.Directory, string) {
	t.Helper()
	store := openDirectory(t, filepath.Join(t.TempDir(), "keys"))
	testkit.Must(t, store.Save(t.Context(), firstRing(), ""))
	_, version, err := store.Load(t.Context())
	testkit.Must(t, err)
	return store, version
}

func keyFile(ring keys.Ring, i int) string { return string(ring.Keys[i].ID) + ".pem" }

// modes returns the modes of a directory and all that is in it.
func modes(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	testkit.Must(t, filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(path, name)
		found[relative] = info.Mode().String()
		return err
	}))
	return found
}

func TestDirectoryLayout(t *testing.T) {
	// The modes come from the store, not from a friendly umask.
	previous := syscall.Umask(0)
	defer syscall.Umask(previous)
	store, _ := filled(t)
	want := map[string]string{".": "drwx------", "ring.json": "-rw-------", ".lock": "-rw-------"}
	for i := range firstRing().Keys {
		want[keyFile(firstRing(), i)] = "-rw-------"
	}
	if diff := cmp.Diff(want, modes(t, store.Path())); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
	document := testkit.Need(os.ReadFile(store.File("ring.json")))(t)
	if bytes.Contains(document, []byte("PRIVATE")) {
		t.Error("ring.json has private keys")
	}
}

func TestDirectoryRefusesWhatOthersCouldRead(t *testing.T) {
	ring := firstRing()
	cases := []struct {
		name string
		// file is loosened; empty stands for the directory.
		file string
		mode fs.FileMode
		want []string
	}{
		{"directory for the group", "", 0o750, []string{"key directory", "0750", "chmod 700"}},
		{"directory to pass through", "", 0o711, []string{"key directory", "0711", "chmod 700"}},
		{"key for the group", keyFile(ring, 1), 0o640, []string{"key file", "0640", "chmod 600"}},
		{"key for all", keyFile(ring, 0), 0o604, []string{"key file", "0604", "chmod 600"}},
		{"key to write for others", keyFile(ring, 3), 0o602, []string{"key file", "0602", "chmod 600"}},
		{"ring", "ring.json", 0o644, []string{"key file", "0644", "chmod 600"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, version := filled(t)
			path := filepath.Join(store.Path(), c.file)
			testkit.Must(t, os.Chmod(path, c.mode))
			wantAll := func(operation string, err error) {
				t.Helper()
				for _, part := range append(c.want, path) {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %v, want an error with %q", operation, err, part)
					}
				}
			}
			_, _, err := store.Load(t.Context())
			wantAll("load", err)
			wantAll("save", store.Save(t.Context(), ring, version))
			if c.file == "" {
				_, err := keystore.OpenDirectory(store.Path())
				wantAll("open", err)
			}
			info, err := os.Stat(path)
			testkit.Must(t, err)
			if info.Mode().Perm() != c.mode {
				t.Errorf("the mode became %v: a looser mode is never repaired in silence", info.Mode())
			}
		})
	}
}

func TestDirectoryRefusesWhatIsNoFile(t *testing.T) {
	ring := firstRing()
	replace := map[string]struct {
		with func(path string) error
		want string
	}{
		"a symbolic link": {func(path string) error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		}, "is a symbolic link"},
		"a directory": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "is a directory"},
		"a pipe":      {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "is a device, pipe or socket"},
		"too large":   {func(path string) error { return os.Truncate(path, 1<<20+1) }, "is larger than"},
		"missing":     {os.Remove, "no"},
	}
	for what, name := range map[string]string{"ring": "ring.json", "key": keyFile(ring, 2)} {
		for _, how := range slices.Sorted(maps.Keys(replace)) {
			t.Run(what+" is "+how, func(t *testing.T) {
				store, _ := filled(t)
				path := store.File(name)
				testkit.Must(t, replace[how].with(path))
				_, _, err := store.Load(t.Context())
				if err == nil || !strings.Contains(err.Error(), replace[how].want) || !strings.Contains(err.Error(), store.Path()) {
					t.Errorf("load: %v, want an error with %q and the path", err, replace[how].want)
				}
				if errors.Is(err, keystore.ErrNotFound) != (name == "ring.json" && how == "missing") {
					t.Errorf("load: %v: only a missing ring.json is an empty store", err)
				}
			})
		}
	}
}

func TestOpenDirectoryRefusesWhatIsNoDirectory(t *testing.T) {
	base := t.TempDir()
	file, link := filepath.Join(base, "file"), filepath.Join(base, "link")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	testkit.Must(t, os.Mkdir(filepath.Join(base, "real"), 0o700))
	testkit.Must(t, os.Symlink("real", link))
	cases := map[string]string{
		file:                            "is a regular file",
		link:                            "is a symbolic link",
		filepath.Join(base, "no", "no"): "make key directory",
	}
	for path, want := range cases {
		if _, err := keystore.OpenDirectory(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("open %s: %v, want an error with %q and the path", path, err, want)
		}
	}
}

func TestDirectoryRefusesOtherOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can give a file to another user")
	}
	for _, name := range []string{"", "ring.json", keyFile(firstRing(), 0)} {
		store, _ := filled(t)
		path := filepath.Join(store.Path(), name)
		testkit.Must(t, os.Chown(path, 65534, -1))
		if _, _, err := store.Load(t.Context()); err == nil || !strings.Contains(err.Error(), path+" belongs to uid 65534") {
			t.Errorf("load with another owner of %q: %v, want an error that names path and owner", name, err)
		}
	}
}

func TestDirectoryWaitsForTheLock(t *testing.T) {
	store, version := filled(t)
	release := testkit.Need(store.Lock(t.Context()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	saved := make(chan error)
	go func() { saved <- store.Save(ctx, nextRing(), version) }()
	cancel()
	if err := <-saved; !errors.Is(err, context.Canceled) {
		t.Errorf("save under a held lock: %v, want context.Canceled", err)
	}
	go func() { saved <- store.Save(t.Context(), nextRing(), version) }()
	release()
	testkit.Expect(t, <-saved, "save after the lock was released")
}

// To move a ring from one store to the other, names and bytes are copied.
func TestSecretAndDirectoryHoldTheSame(t *testing.T) {
	a, _, _ := secretFilled(t)
	directory := openDirectory(t, filepath.Join(t.TempDir(), "keys"))
	testkit.Must(t, directory.Save(t.Context(), firstRing(), ""))
	files := map[string][]byte{}
	for name := range modes(t, directory.Path()) {
		if name == "." || name == ".lock" {
			continue
		}
		content := testkit.Need(os.ReadFile(directory.File(name)))(t)
		files[name] = content
	}
	if diff := cmp.Diff(files, a.get(ringName).Data); diff != "" {
		t.Errorf("directory and Secret (-directory +Secret):\n%s", diff)
	}
}

// Without notifications, as on network file systems, changes are found all the same.
func TestFollowDirectoryByPolls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writer := openDirectory(t, path)
	f := follow(t, struct{ keystore.Store }{openDirectory(t, path)}, 0)
	if got := receive(t, f.report); !errors.Is(got.err, keystore.ErrNotFound) {
		t.Errorf("got %+v, want ErrNotFound", got)
	}
	version, last := "", time.Time{}
	for _, ring := range []keys.Ring{firstRing(), nextRing()} {
		testkit.Must(t, writer.Save(t.Context(), ring, version))
		_, saved, err := writer.Load(t.Context())
		testkit.Must(t, err)
		f.pass(t, keystore.MinPause)
		f.pass(t, interval)
		got := receive(t, f.report)
		if got.version != saved || !got.readAt.After(last) {
			t.Errorf("got %+v, want version %s after %v", got, saved, last)
		}
		version, last = saved, got.readAt
	}
	f.stop()
}

// Only what is damaged is ErrUnusable: a directory that can not be read may be readable again.
func TestDirectoryTellsDamageFromOutage(t *testing.T) {
	key := keyFile(firstRing(), 1)
	cases := map[string]struct {
		change   func(store *keystore.Directory) error
		unusable bool
	}{
		"damaged ring.json": {func(d *keystore.Directory) error { return os.Truncate(d.File("ring.json"), 40) }, true},
		"damaged key":       {func(d *keystore.Directory) error { return os.Truncate(d.File(key), 200) }, true},
		"lost key":          {func(d *keystore.Directory) error { return os.Remove(d.File(key)) }, true},
		"lost ring.json":    {func(d *keystore.Directory) error { return os.Remove(d.File("ring.json")) }, false},
		"key for others":    {func(d *keystore.Directory) error { return os.Chmod(d.File(key), 0o644) }, false},
		"directory away":    {func(d *keystore.Directory) error { return os.Rename(d.Path(), d.Path()+".away") }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store, _ := filled(t)
			testkit.Must(t, c.change(store))
			if _, _, err := store.Load(t.Context()); err == nil || errors.Is(err, keystore.ErrUnusable) != c.unusable {
				t.Errorf("load: %v, want ErrUnusable: %t", err, c.unusable)
			}
		})
	}
}

// Whatever bytes are in the files, Load returns a valid ring or an error that names the file.
func FuzzDirectoryLoad(f *testing.F) {
	encoded, err := firstRing().Encode()
	if err != nil {
		f.Fatal(err)
	}
	id := firstRing().Keys[2].ID
	f.Add([]byte(nil), encoded.Private[id])
	f.Add(encoded.Document, []byte("-----BEGIN PRIVATE KEY-----\n"))
	f.Add([]byte("{}"), []byte{})
	f.Fuzz(func(t *testing.T, document, private []byte) {
		store := openDirectory(t, filepath.Join(t.TempDir(), "keys"))
		files := map[string][]byte{keystore.DocumentName: document}
		if len(document) == 0 {
			files[keystore.DocumentName] = encoded.Document
		}
		for known, data := range encoded.Private {
			files[keystore.KeyName(known)] = data
		}
		files[keystore.KeyName(id)] = private
		for name, data := range files {
			testkit.Must(t, os.WriteFile(store.File(name), data, 0o600))
		}
		ring, _, err := store.Load(t.Context())
		switch {
		case err == nil:
			testkit.Expect(t, ring.Validate(), "loaded a ring that is not valid")
		case !strings.Contains(err.Error(), store.Path()):
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
