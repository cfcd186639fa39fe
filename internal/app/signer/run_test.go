//go:build unix

package signer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"k8s.io/utils/clock"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

// patience bounds the wait for what must happen; nothing is concluded from how long it took.
const patience = 5 * time.Minute

const testIssuer = "https://kubernetes.default.svc"

// output is a log that may be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// running is a signer that runs.
type running struct {
	config Config
	health string
	log    output
	client *externalsigner.Client
	stop   func() error
}

func testConfig(t *testing.T) Config {
	t.Helper()
	dir := filepath.Dir(externalsignertest.Socket(t))
	return Config{
		Issuer: testIssuer, KeysDir: filepath.Join(dir, "keys"), Socket: filepath.Join(dir, "run", "socket"),
		Settings: keys.Settings{Staleness: 2 * time.Second, MaxLifetime: time.Hour},
	}
}

func start(t *testing.T, config Config) *running {
	t.Helper()
	r := &running{config: config}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	listener := testkit.Listen(t)
	r.health = "http://" + listener.Addr().String()
	config.HealthListener = listener
	config.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("run: %v\n%s", err, r.log.String())
		}
	})
	var err error
	if r.client, err = externalsigner.New(externalsigner.Config{Socket: config.Socket, Timeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.client.Close() })
	return r
}

func claims() []byte {
	now := time.Now()
	data, err := json.Marshal(map[string]any{"iss": testIssuer, "sub": "a", "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix()})
	if err != nil {
		panic(err)
	}
	return data
}

func (r *running) keys(t *testing.T) externalsigner.Announcement {
	t.Helper()
	announced := testkit.Need(r.client.Keys(t.Context()))(t)
	return announced
}

// sign returns the kid of a token that verifies with what is announced. It tries again while the signer has not read
// its keys lately, as happens on a machine that stalls.
func (r *running) sign(t *testing.T) (kid identity.KeyID) {
	t.Helper()
	testkit.Eventually(t, "a token is signed", func() bool {
		signed, err := r.client.Sign(t.Context(), r.keys(t), claims(), keys.Algorithms())
		if err != nil && !strings.Contains(err.Error(), "Unavailable: ") {
			t.Fatal(err)
		}
		kid = signed.KeyID
		return err == nil
	})
	return kid
}

func (r *running) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	testkit.Eventually(t, "an answer to "+path, func() bool {
		response, err := http.Get(r.health + path)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		data, err := io.ReadAll(response.Body)
		code, body = response.StatusCode, string(data)
		return err == nil
	})
	return code, body
}

// logged waits until the log has a text: a ring signs a moment before what has changed in it is logged.
func (r *running) logged(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, "the log has "+text, func() bool { return strings.Contains(r.log.String(), text) })
}

func TestRunConforms(t *testing.T) {
	t.Parallel()
	for _, algorithm := range keys.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			config := testConfig(t)
			config.Algorithm = string(algorithm)
			config.Settings.Staleness = time.Minute // keys are read in time although much is signed
			r := start(t, config)
			if signed, err := r.client.Sign(t.Context(), r.keys(t), claims(), []identity.Algorithm{algorithm}); err != nil || signed.Algorithm != algorithm {
				t.Fatalf("%+v, %v", signed, err)
			}
			externalsignertest.Run(t, externalsignertest.Subject{Socket: config.Socket, Claims: claims})
			if longest, err := r.client.MaxLifetime(t.Context()); longest != time.Hour || err != nil {
				t.Errorf("maximum lifetime %s, %v", longest, err)
			}
			if hint := r.keys(t).RefreshHint; hint > config.Settings.Staleness {
				t.Errorf("refresh hint %s", hint)
			}
			for path, want := range map[string]string{
				"/livez": "ok", "/readyz": "ok", "/metrics": fmt.Sprintf("credence_signer_signatures_total{algorithm=%q,outcome=\"signed\"}", algorithm),
			} {
				if code, body := r.get(t, path); code != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s: %d\n%s", path, code, body)
				}
			}
		})
	}
}

// Keys outlive the program, and two programs do not have the same.
func TestKeysAndSocketAreOfOneSigner(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	first := start(t, config)
	kid := first.sign(t)
	elsewhere := config
	elsewhere.Socket += "-2"
	other := config
	other.KeysDir += "-2"
	for flag, second := range map[string]Config{"--keys-dir": elsewhere, "--socket": other} {
		if err := Run(t.Context(), second); err == nil || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), "another") {
			t.Errorf("a second signer: %v, want an error about %s", err, flag)
		}
	}
	testkit.Must(t, first.stop())
	if again := start(t, config).sign(t); again != kid {
		t.Errorf("signed with %s after a restart, with %s before", again, kid)
	}
}

// While tokens are signed, the key is rotated, and revoked: what is signed verifies with what is announced at any time, and
// a spare counts as published from when it was announced.
func TestRotationAndRevocation(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Settings = keys.Settings{Staleness: 2 * time.Second, PublishPeriod: 2 * time.Second, ClockSkew: time.Second}
	r := start(t, config)
	first := r.sign(t)

	cause := keys.Cause{By: "operator", Reason: "a test"}
	operate(t, config, func(keyring.Operator) keyring.Command {
		return keyring.Rotate(keys.Command{Algorithm: identity.RS256, Cause: cause})
	})
	// Not before the spare was published for P and what clocks may be wrong.
	second := first
	testkit.Eventually(t, "the spare signs", func() bool { second = r.sign(t); return second != first })
	if published := kids(r.keys(t)); !strings.Contains(published, string(first)) {
		t.Errorf("the retired key %s is announced no more: %s", first, published)
	}
	if got := states(t, config); got[first] != keys.Retiring || got[second] != keys.Active {
		t.Errorf("keys: %v, want %s to retire and %s to be active", got, first, second)
	}

	operate(t, config, func(o keyring.Operator) keyring.Command {
		return o.Revoke(keys.Command{Key: second, AcceptRefusals: true, Cause: cause})
	})
	testkit.Eventually(t, "the next spare signs", func() bool { kid := r.sign(t); return kid != first && kid != second })
	if published := kids(r.keys(t)); strings.Contains(published, string(second)) {
		t.Errorf("the revoked key %s is announced: %s", second, published)
	}
	for _, want := range []string{"event=activated", "event=retired", "event=revoked", `reason="a test"`} {
		r.logged(t, want)
	}
}

func kids(announced externalsigner.Announcement) string {
	var list []string
	for _, key := range announced.Published {
		list = append(list, string(key.ID))
	}
	return strings.Join(list, " ")
}

// operate does to the folder of a running signer what credence keys does.
func operate(t *testing.T, config Config, command func(keyring.Operator) keyring.Command) {
	t.Helper()
	store := testkit.Need(keystore.OpenDirectory(config.KeysDir))(t)
	operator := keyring.Operator{
		Store: store, Clock: clock.RealClock{}, Generate: keys.NewPrivate,
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: config.Settings}, nil },
	}
	testkit.Must(t, testkit.Err(operator.Do(t.Context(), command(operator), false)))
}

// ring is the one that is stored.
func ring(t *testing.T, config Config) keys.Ring {
	t.Helper()
	store, err := keystore.OpenDirectory(config.KeysDir)
	testkit.Must(t, err)
	ring, _, err := store.Load(t.Context())
	testkit.Must(t, err)
	return ring
}

func states(t *testing.T, config Config) map[identity.KeyID]keys.State {
	t.Helper()
	all := map[identity.KeyID]keys.State{}
	for _, key := range ring(t, config).Keys {
		all[key.ID] = key.State
	}
	return all
}

// No key is used before kube-apiserver got it: here it never fetches the keys, so the new spare does not sign.
func TestSpareThatNobodyFetchedDoesNotSign(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Settings = keys.Settings{Staleness: 2 * time.Second, PublishPeriod: 2 * time.Second, ClockSkew: time.Second}
	r := start(t, config)
	r.logged(t, "health and metrics")
	operate(t, config, func(keyring.Operator) keyring.Command {
		return keyring.Rotate(keys.Command{Algorithm: identity.RS256, Cause: keys.Cause{By: "operator"}})
	})
	r.logged(t, string(keys.AwaitingGates)) // kube-apiserver
	for id, state := range states(t, config) {
		if state == keys.Retiring {
			t.Errorf("it was rotated: %s retires", id)
		}
	}
}

// A ring that is damaged is not signed with, and stays announced.
func TestDamagedRing(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	r := start(t, config)
	r.sign(t)
	document := filepath.Join(config.KeysDir, "ring.json")
	good := testkit.Need(os.ReadFile(document))(t)
	testkit.Must(t, os.WriteFile(document, []byte("{}"), 0o600))
	r.logged(t, "the ring of keys could not be read")
	testkit.Eventually(t, "it is not ready", func() bool { code, _ := r.get(t, "/readyz"); return code == http.StatusServiceUnavailable })
	announced := r.keys(t)
	if _, err := r.client.Sign(t.Context(), announced, claims(), keys.Algorithms()); err == nil {
		t.Error("a token was signed")
	}
	testkit.Must(t, os.WriteFile(document, good, 0o600))
	testkit.Eventually(t, "it is ready", func() bool { code, _ := r.get(t, "/readyz"); return code == http.StatusOK })
	r.sign(t)
}

// An older ring that is put back while the signer runs revives no key that was revoked.
func TestOldRingIsNotSignedWith(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	r := start(t, config)
	stolen := r.sign(t)
	old, newest := t.TempDir(), t.TempDir()
	copyKeys(t, old, config.KeysDir)
	operate(t, config, func(o keyring.Operator) keyring.Command {
		return o.Revoke(keys.Command{Key: stolen, AcceptRefusals: true, Cause: keys.Cause{By: "operator", Reason: "stolen"}})
	})
	// Once the signer has noted that the next spare is announced, it writes no more: a copy that it replaces would not be put back.
	testkit.Eventually(t, "the revoked key is announced no more, and the spare is", func() bool {
		return !strings.Contains(kids(r.keys(t)), string(stolen)) && !slices.ContainsFunc(ring(t, config).Keys, func(key keys.Key) bool {
			return key.State == keys.Spare && key.PublishedAt.IsZero()
		})
	})
	copyKeys(t, newest, config.KeysDir)

	copyKeys(t, config.KeysDir, old)
	r.logged(t, "key "+string(stolen)+" was revoked")
	testkit.Eventually(t, "it is not ready", func() bool { code, _ := r.get(t, "/readyz"); return code == http.StatusServiceUnavailable })
	announced := r.keys(t)
	if strings.Contains(kids(announced), string(stolen)) {
		t.Error("the revoked key is announced again")
	}
	if _, err := r.client.Sign(t.Context(), announced, claims(), keys.Algorithms()); err == nil {
		t.Error("a token was signed")
	}
	copyKeys(t, config.KeysDir, newest)
	testkit.Eventually(t, "it is ready", func() bool { code, _ := r.get(t, "/readyz"); return code == http.StatusOK })
	if kid := r.sign(t); kid == stolen {
		t.Error("the revoked key signs again")
	}
}

// With a past outside of the folder, a signer that was restarted signs neither with an older ring nor with new keys, until that is accepted.
// Then what was revoked stays so.
func TestOldRingIsNotSignedWithAfterARestart(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Settings = keys.Settings{Staleness: 2 * time.Second, PublishPeriod: 2 * time.Second, ClockSkew: time.Second}
	config.PastFile = filepath.Join(t.TempDir(), "past.json")
	r := start(t, config)
	stolen := r.sign(t)
	old := t.TempDir()
	copyKeys(t, old, config.KeysDir)
	operate(t, config, func(o keyring.Operator) keyring.Command {
		return o.Revoke(keys.Command{Key: stolen, AcceptRefusals: true, Cause: keys.Cause{By: "operator", Reason: "stolen"}})
	})
	testkit.Eventually(t, "the revoked key is announced no more", func() bool { return !strings.Contains(kids(r.keys(t)), string(stolen)) })
	// It was written down before that ring was used.
	if known, err := pastFile(config.PastFile).read(t.Context()); err != nil || len(known.Revoked) != 1 || known.Revoked[0].ID != stolen || known.Revoked[0].Reason != "stolen" {
		t.Errorf("known is %+v, %v", known, err)
	}
	testkit.Must(t, r.stop())

	refused := func(want ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience) // a signer that is not refused runs until then
		defer cancel()
		err := Run(ctx, config)
		if err == nil {
			t.Fatal("it ran")
		}
		for _, text := range append(want, "credence keys initialize") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q does not have %q", err, text)
			}
		}
	}
	testkit.Must(t, os.Rename(config.KeysDir, config.KeysDir+"-newest"))
	refused("there are no keys")
	if _, err := os.Stat(filepath.Join(config.KeysDir, "ring.json")); !os.IsNotExist(err) {
		t.Errorf("there is a ring: %v", err)
	}
	copyKeys(t, config.KeysDir, old)
	refused("older ring", "key "+string(stolen)+" was revoked")

	store, err := keystore.OpenDirectory(config.KeysDir)
	testkit.Must(t, err)
	ring, version, err := store.Load(t.Context())
	testkit.Must(t, err)
	ring.Resumed = &keys.Resuming{At: time.Now().UTC().Truncate(time.Second), Cause: keys.Cause{By: "operator", Reason: "the newest is lost"}}
	testkit.Must(t, store.Save(t.Context(), ring, version))
	again := start(t, config)
	if kid := again.sign(t); kid == stolen {
		t.Error("the revoked key signs again")
	}
	if strings.Contains(kids(again.keys(t)), string(stolen)) {
		t.Error("the revoked key is announced again")
	}
}

// A past that cannot be read is no past without revocations.
func TestDamagedPast(t *testing.T) {
	file := pastFile(filepath.Join(t.TempDir(), "past.json"))
	if known, err := file.read(t.Context()); err != nil || !known.Empty() {
		t.Errorf("before the first: %+v, %v", known, err)
	}
	for _, text := range []string{
		"", "{", `{"published":{},"revokedKeys":[]}`, `{"published":{}} {}`,
		// A ring always has keys, so the signer never writes a past without any.
		"null", "{}", `{"published":null}`, `{"published":{}}`, `{"revoked":[]}`,
	} {
		testkit.Must(t, os.WriteFile(string(file), []byte(text), 0o600))
		if _, err := file.read(t.Context()); err == nil || !strings.Contains(err.Error(), string(file)+" is damaged") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A link to a file that is gone is no missing file: the past is elsewhere.
func TestPastBehindABrokenLink(t *testing.T) {
	file := pastFile(filepath.Join(t.TempDir(), "past.json"))
	testkit.Must(t, os.Symlink("away.json", string(file)))
	if known, err := file.read(t.Context()); err == nil || !strings.Contains(err.Error(), string(file)) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%+v, %v", known, err)
	}
}

// Where the past is does not depend on how its path is written.
func TestPastInTheFolderOfKeys(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"keys/below", "elsewhere"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	for name, target := range map[string]string{
		"linked": "keys", "linked-below": "keys/below", "linked.json": "keys/past.json", "keys/out.json": "../elsewhere/past.json", "around": "elsewhere",
	} {
		testkit.Must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "keys", "past.json"), nil, 0o600))
	for _, test := range []struct {
		file, folder string
		want         bool
	}{
		{"keys/past.json", "keys", true},
		{"linked/new.json", "keys", true},
		{"linked-below/new.json", "keys", true},
		{"linked.json", "keys", true},
		{"keys/new.json", "linked", true},
		{"keys/out.json", "keys", true},
		{"new/past.json", "new", true},
		{"linked/new/past.json", "keys/new", true},
		{"elsewhere/past.json", "keys", false},
		{"around/past.json", "keys", false},
		{"linked/past.json", "keys/new", false},
		{"past.json", "keys", false},
	} {
		if got := pastFile(filepath.Join(dir, test.file)).in(filepath.Join(dir, test.folder)); got != test.want {
			t.Errorf("%s in %s: %t, want %t", test.file, test.folder, got, test.want)
		}
	}
}

// copyKeys copies the files of a folder of keys, the ring last: keys that it does not name are of no use.
func copyKeys(t *testing.T, to, from string) {
	t.Helper()
	files := testkit.Need(filepath.Glob(filepath.Join(from, "*.pem")))(t)
	for _, file := range append(files, filepath.Join(from, "ring.json")) {
		data := testkit.Need(os.ReadFile(file))(t)
		testkit.Must(t, os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o600))
	}
}

// The first keys need be kept no longer than the longest token that was ever offered.
func TestFirstRingHasTheTermsOfTheSettings(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	start(t, config).sign(t)
	for _, key := range ring(t, config).Keys {
		if want := (keys.Terms{MaxLifetime: time.Hour, Staleness: 2 * time.Second}); key.State == keys.Active && key.Terms != want {
			t.Errorf("terms %+v, want %+v", key.Terms, want)
		}
	}
}
