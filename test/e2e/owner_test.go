package e2e_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/apiserver/storage"
)

// A storage is one installation's, which is known by its issuer. The API server of another one ends before it has written anything. It may
// take over what is left of an installation that it names.
func TestTwoInstallationsWithOneStorage(t *testing.T) {
	inTurn(t)
	etcd := need(storage.Start(t.Context(), filepath.Join(t.TempDir(), "etcd"), slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(etcd.Stop)
	const first, second = "https://first.example", "https://second.example"
	keys := filepath.Join(t.TempDir(), "keys")
	of := func(issuer string, more map[string]string) map[string]string {
		flags := map[string]string{"issuer": issuer, "keys-dir": keys, "etcd-data-dir": "", "etcd-servers": etcd.Endpoint(), "etcd-compaction-interval": "0"}
		maps.Copy(flags, more)
		return flags
	}
	namespace := shared.namespace(t)
	t.Run("refused", func(t *testing.T) {
		server := shared.replica(t, of(first, nil))
		eventually(t, func() error { // what reviews requests is ready a moment later
			return do(t, server, "POST", identitiesPath(namespace), "application/json", identityJSON("one", "generic", "a")).is(http.StatusCreated)
		})
		before, published := revision(t, server), filepath.Join(t.TempDir(), "public")
		for _, former := range []string{"", "https://third.example"} {
			refuseToStart(t, []string{"whose issuer is " + first, "--issuer is " + second, "an --etcd-prefix of its own", "--take-over-from=" + first},
				of(second, map[string]string{"take-over-from": former, "publish-dir": published, "keys-dir": filepath.Join(t.TempDir(), "keys")}))
		}
		if after := revision(t, server); after != before {
			t.Errorf("what was refused has changed the storage: revision %s, was %s", after, before)
		}
		if _, err := os.Stat(published); !os.IsNotExist(err) {
			t.Errorf("what was refused has published something: %v", err)
		}
		shared.replica(t, of(second, map[string]string{"etcd-prefix": "/registry/second", "keys-dir": filepath.Join(t.TempDir(), "keys")}))
		// The key controller of another installation, or one that was taken over.
		expect(t, do(t, server, "PATCH", ringPath+"/status", mergePatch, `{"status":{"issuer":"`+second+`"}}`).is(http.StatusUnprocessableEntity, "must be "+first), "another issuer in the KeyRing")
		expect(t, do(t, server, "PATCH", ringPath+"/status", mergePatch, `{"status":{"issuer":null}}`).is(http.StatusOK, `"issuer":"`+first+`"`), "no issuer in the KeyRing")
	})
	others := keysAnew(t)
	t.Run("taken over", func(t *testing.T) {
		server := shared.replica(t, of(second, map[string]string{"take-over-from": first, "keys-dir": others}))
		refuseToStart(t, []string{"whose issuer is " + second}, of(first, nil))
		eventually(t, func() error {
			return do(t, server, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(http.StatusConflict, first)
		})
		expect(t, do(t, server, "POST", identitiesPath(namespace), "application/json", identityJSON("two", "generic", "a")).is(http.StatusCreated), "create")
		if _, has := claims(t, token(t, server, namespace, "two", `{}`).Status.Token); has["iss"] != second {
			t.Errorf("a token of issuer %s, want %s", has["iss"], second)
		}
	})
	t.Run("afterwards", func(t *testing.T) { shared.replica(t, of(second, map[string]string{"keys-dir": others})) })
	t.Run("both at first", func(t *testing.T) { bothAtFirst(t, of, first, second) })
}

// keysAnew returns a folder of keys for a storage that is taken over without the former keys.
func keysAnew(t *testing.T) string {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	shared.must(t, "", "credence", "keys", "initialize", "--keys-dir", dir, "--accept-loss", "--reason", "taken over")
	return dir
}

// bothAtFirst starts two installations on one empty storage. One of them has it, the other one ends. When that takes the storage over, the first
// one ends too, although it runs.
func bothAtFirst(t *testing.T, of func(string, map[string]string) map[string]string, issuers ...string) {
	type server struct {
		issuer string
		*exec.Cmd
		log bytes.Buffer
		err error
	}
	ended := make(chan *server, len(issuers))
	var all []*server
	for _, issuer := range issuers {
		flags := of(issuer, map[string]string{"etcd-prefix": "/registry/both", "keys-dir": filepath.Join(t.TempDir(), "keys")})
		s := &server{issuer: issuer, Cmd: exec.Command(program("credence-server"), serverFlags(t, flags)...)}
		s.Stderr = &s.log
		must(t, s.Start())
		go func() {
			s.err = s.Wait()
			ended <- s
		}()
		all = append(all, s)
	}
	ends := func() bool { // the one of a storage that is the other's
		select {
		case s := <-ended:
			other := issuers[0]
			if s.issuer == other {
				other = issuers[1]
			}
			if s.err == nil || !strings.Contains(s.log.String(), "whose issuer is "+other) {
				t.Errorf("%s: %v\n%s", s.issuer, s.err, s.log.String())
			}
			all = slices.DeleteFunc(all, func(one *server) bool { return one == s })
			return true
		case <-time.After(5 * time.Minute):
			t.Errorf("%d go on", len(all))
			return false
		}
	}
	if ends() {
		taker := issuers[0]
		if all[0].issuer == taker {
			taker = issuers[1]
		}
		shared.replica(t, of(taker, map[string]string{"etcd-prefix": "/registry/both", "keys-dir": keysAnew(t), "take-over-from": all[0].issuer}))
		ends()
	}
	for _, s := range all {
		expect(t, s.Process.Signal(syscall.SIGTERM))
	}
	for range all {
		if s := <-ended; s.err != nil {
			t.Errorf("%s: %v\n%s", s.issuer, s.err, s.log.String())
		}
	}
}

// revision is that of the whole etcd.
func revision(t *testing.T, server *rest.Config) string {
	t.Helper()
	got := do(t, server, "GET", filepath.Dir(ringPath), "", "")
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(got.Body, &list); err != nil || got.Code != http.StatusOK || list.ResourceVersion == "" {
		t.Fatalf("list: %d %s %v", got.Code, got.Body, err)
	}
	return list.ResourceVersion
}
