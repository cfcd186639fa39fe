//go:build unix

package keystore_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// Each case is what a writer leaves behind that is killed before the named step of replacing the first ring by the second.
func TestCrashLeavesARingAndTheNextSaveCleansUp(t *testing.T) {
	old, next := firstRing(), nextRing()
	encoded := testkit.Need(next.Encode())(t)
	newKey := next.Keys[3].ID
	leftovers := []struct {
		before string
		files  map[string][]byte
	}{
		{"writing the key", map[string][]byte{".tmp-1": nil}},
		{"renaming the key", map[string][]byte{".tmp-1": encoded.Private[newKey]}},
		{"writing ring.json", map[string][]byte{keystore.KeyName(newKey): encoded.Private[newKey], ".tmp-2": encoded.Document[:50]}},
		{"renaming ring.json", map[string][]byte{keystore.KeyName(newKey): encoded.Private[newKey], ".tmp-2": encoded.Document}},
		{"removing the old key", map[string][]byte{keystore.KeyName(newKey): encoded.Private[newKey], "ring.json": encoded.Document}},
	}
	for _, c := range leftovers {
		t.Run(c.before, func(t *testing.T) {
			store, _ := filled(t)
			want := old
			if c.files[keystore.DocumentName] != nil {
				want = next
			}
			// Foreign files stay, also where they look like keys.
			foreign := map[string][]byte{"README": []byte("mine"), "backup.pem": []byte("mine too")}
			for _, files := range []map[string][]byte{c.files, foreign} {
				for name, data := range files {
					testkit.Must(t, os.WriteFile(store.File(name), data, 0o600))
				}
			}
			got, version, err := store.Load(t.Context())
			testkit.Must(t, err)
			if diff := keystoretest.Diff(want, got); diff != "" {
				t.Fatalf("ring after the crash (-want +got):\n%s", diff)
			}
			last := keystoretest.WithNewSpare(got)
			testkit.Must(t, store.Save(t.Context(), last, version))
			files := map[string]bool{".": true, "ring.json": true, ".lock": true, "README": true, "backup.pem": true}
			for i := range last.Keys {
				files[keyFile(last, i)] = true
			}
			found := map[string]bool{}
			for name := range modes(t, store.Path()) {
				found[name] = true
			}
			if diff := cmp.Diff(files, found); diff != "" {
				t.Errorf("files after the next save (-want +got):\n%s", diff)
			}
		})
	}
}

// A first writer that is killed before ring.json exists leaves an empty store, which is filled by the next one. The key
// files stay until the ring changes for the first time: they could as well be those of a ring.json that was lost.
func TestCrashOfTheFirstSave(t *testing.T) {
	store := openDirectory(t, filepath.Join(t.TempDir(), "keys"))
	encoded, err := nextRing().Encode()
	testkit.Must(t, err)
	for id, data := range encoded.Private {
		testkit.Must(t, os.WriteFile(store.File(keystore.KeyName(id)), data, 0o600))
	}
	ring, version, err := keystore.LoadOrBootstrap(t.Context(), store, keystoretest.RSAOnce(), keystoretest.Now())
	testkit.Must(t, err)
	for id, data := range encoded.Private {
		if kept, err := os.ReadFile(store.File(keystore.KeyName(id))); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("key file %s, of a ring that may be restored: %v", keystore.KeyName(id), err)
		}
	}
	ring.Keys[0].PublishedAt = ring.Keys[0].PublishedAt.Add(-time.Hour)
	testkit.Must(t, store.Save(t.Context(), ring, version))
	if found := modes(t, store.Path()); len(found) != len(ring.Keys)+3 {
		t.Errorf("after a change directory holds %v, want four keys, ring.json and the lock", found)
	}
}

const crashDirectory = "KEYSTORE_TEST_CRASH_DIRECTORY"

// TestMain runs this program as a writer that never stops, for TestKilledWriters.
func TestMain(m *testing.M) {
	path := os.Getenv(crashDirectory)
	if path == "" {
		os.Exit(m.Run())
	}
	store, err := keystore.OpenDirectory(path)
	for err == nil {
		err = replaceSpare(store)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func replaceSpare(store *keystore.Directory) error {
	ring, version, err := store.Load(context.Background())
	if err != nil {
		return err
	}
	if err := store.Save(context.Background(), keystoretest.WithNewSpare(ring), version); err != nil {
		return err
	}
	_, err = fmt.Println("saved")
	return err
}

// Writers are killed at random points; there is a ring to load after each of them.
func TestKilledWriters(t *testing.T) {
	store, _ := filled(t)
	for round := range 10 {
		writer := exec.CommandContext(t.Context(), os.Args[0])
		writer.Env = append(os.Environ(), crashDirectory+"="+store.Path())
		writer.Stderr = os.Stderr
		output := testkit.Need(writer.StdoutPipe())(t)
		testkit.Must(t, writer.Start())
		lines := bufio.NewScanner(output)
		for range 1 + round%3 {
			if !lines.Scan() {
				t.Fatal("the writer stopped by itself")
			}
		}
		testkit.Must(t, writer.Process.Kill())
		_ = writer.Wait() // it was killed
		if _, _, err := store.Load(t.Context()); err != nil {
			t.Fatalf("load after round %d: %v", round, err)
		}
	}
}
