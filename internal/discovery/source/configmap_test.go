package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const fakeName = "documents"

func documentData(documents discovery.Documents) map[string]string {
	return map[string]string{discovery.ConfigurationKey: string(documents.Configuration()), discovery.JWKSKey: string(documents.JWKS())}
}

func followConfigMap(t *testing.T, api *fakeAPI, cacheFolder string) (served *published, stop func()) {
	t.Helper()
	source, err := NewConfigMap(api.config(), fakeNamespace, fakeName, cacheFolder, silent())
	must(t, err)
	source.backoff = wait.Backoff{Duration: time.Millisecond, Factor: 2, Jitter: 1, Steps: 5, Cap: 10 * time.Millisecond}
	served = newPublished()
	return served, start(t, func(ctx context.Context) error { return source.Run(ctx, served) })
}

func TestConfigMapIsFollowed(t *testing.T) {
	api := newFakeAPI(t)
	served, _ := followConfigMap(t, api, "")
	testkit.Eventually(t, "the missing ConfigMap is reported", func() bool { _, _, unreadable := served.counts(); return unreadable == 1 })
	foreign := newDocuments(t)
	for range 3 {
		for range 3 {
			next := newDocuments(t)
			api.put("of-others", documentData(foreign))
			api.put(fakeName, documentData(next))
			testkit.Eventually(t, "the ConfigMap's documents are served", func() bool { return served.serves(next) })
		}
		last := newDocuments(t)
		api.put(fakeName, documentData(last))
		testkit.Eventually(t, "the last documents are served", func() bool { return served.serves(last) })
		_, _, before := served.counts()
		api.remove(fakeName)
		testkit.Eventually(t, "the deletion is reported", func() bool { _, _, unreadable := served.counts(); return unreadable == before+1 })
		if !served.serves(last) {
			t.Fatal("the last good documents are not served any more after the deletion")
		}
	}
	if served.saw(foreign) {
		t.Error("documents of another ConfigMap were taken")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if diff := cmp.Diff(map[string]bool{"metadata.name=" + fakeName: true}, api.selectors); diff != "" {
		t.Errorf("requested field selectors (-want +got):\n%s", diff)
	}
}

func TestConfigMapStartsWithoutTheAPI(t *testing.T) {
	api, folder := newFakeAPI(t), filepath.Join(t.TempDir(), "cache")
	first, second := newDocuments(t), newDocuments(t)
	api.put(fakeName, documentData(first))
	served, stop := followConfigMap(t, api, folder)
	testkit.Eventually(t, "documents are served", func() bool { return served.serves(first) })
	testkit.Eventually(t, "documents are cached", func() bool { _, err := os.Stat(filepath.Join(folder, cacheFile)); return err == nil })
	stop()

	api.setAway(true)
	served, _ = followConfigMap(t, api, folder)
	testkit.Eventually(t, "cached documents are served without the API", func() bool { return served.serves(first) })
	testkit.Eventually(t, "the outage is reported", func() bool { _, _, unreadable := served.counts(); return unreadable > 0 })

	api.put(fakeName, documentData(second))
	api.setAway(false)
	testkit.Eventually(t, "the API's documents take the place of the cached ones", func() bool { return served.serves(second) })
}

// An older ConfigMap that is put back brings no revoked key back, also to a server that was restarted: its cache knows the revocation.
func TestOldConfigMapBringsNoRevokedKeyBack(t *testing.T) {
	api, folder := newFakeAPI(t), filepath.Join(t.TempDir(), "cache")
	kept, stolen := newPublicKey(t), newPublicKey(t)
	old, newest := documentsOf(t, kept, stolen), documentsOf(t, kept)
	id, err := identity.KeyIDOf(stolen)
	must(t, err)
	withList := documentData(newest)
	withList[discovery.RevokedKey] = discovery.EncodeRevoked([]discovery.Revoked{{ID: id, Algorithm: identity.ES256, At: time.Unix(1_700_000_000, 0).UTC()}})

	api.put(fakeName, documentData(old))
	served, stop := followConfigMap(t, api, folder)
	testkit.Eventually(t, "the first documents are served", func() bool { return served.serves(old) })
	api.put(fakeName, withList)
	testkit.Eventually(t, "the documents without the revoked key are served", func() bool { return served.serves(newest) })
	testkit.Eventually(t, "the documents and the revocation are cached", func() bool {
		cache := documentsCache{folder: folder}
		_, jwks, err := cache.load()
		return err == nil && string(jwks) == string(newest.JWKS()) && cache.revoked() != ""
	})
	_, refusals, _ := served.counts()
	api.put(fakeName, documentData(old))
	testkit.Eventually(t, "the older documents are refused", func() bool { _, now, _ := served.counts(); return now > refusals })
	if !served.serves(newest) {
		t.Error("the revoked key is served again")
	}
	stop()

	again, _ := followConfigMap(t, api, folder)
	testkit.Eventually(t, "the older documents are refused after a restart", func() bool { _, now, _ := again.counts(); return now > 0 })
	if !again.serves(newest) {
		t.Error("the revoked key is served again after a restart")
	}
}

func TestConfigMapWaitsForTheAPI(t *testing.T) {
	api := newFakeAPI(t)
	api.setAway(true)
	served, _ := followConfigMap(t, api, "")
	testkit.Eventually(t, "the outage is reported", func() bool { _, _, unreadable := served.counts(); return unreadable > 0 })
	if served.Loaded() {
		t.Error("loaded without an API and a cache")
	}
	documents := newDocuments(t)
	api.put(fakeName, documentData(documents))
	api.setAway(false)
	testkit.Eventually(t, "documents are served when the API is there", func() bool { return served.serves(documents) })
}

func TestConfigMapSurvivesAnOutage(t *testing.T) {
	api := newFakeAPI(t)
	documents := newDocuments(t)
	api.put(fakeName, documentData(documents))
	served, _ := followConfigMap(t, api, "")
	testkit.Eventually(t, "documents are served", func() bool { return served.serves(documents) })
	for range 3 {
		_, _, before := served.counts()
		api.setAway(true)
		testkit.Eventually(t, "the outage is reported", func() bool { _, _, unreadable := served.counts(); return unreadable > before })
		if !served.serves(documents) {
			t.Fatal("documents are not served during the outage")
		}
		loads, _, _ := served.counts()
		api.setAway(false)
		testkit.Eventually(t, "the same documents are loaded again, so that the source is known to be well", func() bool { after, _, _ := served.counts(); return after > loads })
		documents = newDocuments(t)
		api.put(fakeName, documentData(documents))
		testkit.Eventually(t, "changes after the outage are served", func() bool { return served.serves(documents) })
	}
}

// TestConfigMapGoesOnWatching is about an API that is away for as long as a restart: the watch resumes where it was, so no
// list shows the source that the API is back.
func TestConfigMapGoesOnWatching(t *testing.T) {
	api := newFakeAPI(t)
	api.put(fakeName, documentData(newDocuments(t)))
	served, _ := followConfigMap(t, api, "")
	testkit.Eventually(t, "it is watched", func() bool { return api.watching() == 1 })
	documents := newDocuments(t)
	api.put(fakeName, documentData(documents))
	testkit.Eventually(t, "documents are served", func() bool { return served.serves(documents) })
	loads, _, _ := served.counts()
	lists := api.listed()
	api.setRefusing(true)
	testkit.Eventually(t, "the outage is reported", func() bool { _, _, unreadable := served.counts(); return unreadable > 0 })
	api.setRefusing(false)
	testkit.Eventually(t, "the documents are loaded again", func() bool { after, _, _ := served.counts(); return after > loads })
	if api.listed() != lists {
		t.Error("a list came in between, so that this shows nothing")
	}
}

func TestConfigMapListsAgainWhenAWatchExpires(t *testing.T) {
	api := newFakeAPI(t)
	documents := newDocuments(t)
	api.put(fakeName, documentData(documents))
	served, _ := followConfigMap(t, api, "")
	for range 3 {
		before := api.watching()
		testkit.Eventually(t, "it is watched", func() bool { return api.watching() > 0 && served.serves(documents) })
		documents = newDocuments(t)
		api.put(fakeName, documentData(documents))
		testkit.Eventually(t, "documents are served from the watch", func() bool { return served.serves(documents) })
		documents = newDocuments(t)
		api.forget()
		api.put(fakeName, documentData(documents))
		testkit.Eventually(t, "documents are served after the watch expired", func() bool { return api.watching() > before && served.serves(documents) })
	}
	if _, _, unreadable := served.counts(); unreadable != 0 {
		t.Error("an expired watch was reported as an outage")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	if diff := cmp.Diff(map[string]bool{"": true}, api.versions); diff != "" || api.lists < 2 {
		t.Errorf("versions that %d lists were content with (-want +got):\n%s", api.lists, diff)
	}
}

func TestConfigMapKeepsTheLastGoodDocuments(t *testing.T) {
	api, folder := newFakeAPI(t), t.TempDir()
	good := newDocuments(t)
	api.put(fakeName, documentData(good))
	served, _ := followConfigMap(t, api, folder)
	testkit.Eventually(t, "good documents are cached", func() bool {
		_, err := os.Stat(filepath.Join(folder, cacheFile))
		return err == nil && served.serves(good)
	})

	bad := documentData(good)
	bad[discovery.JWKSKey] = `{"keys":[]}`
	api.put(fakeName, bad)
	testkit.Eventually(t, "bad documents are refused", func() bool { _, refusals, _ := served.counts(); return refusals == 1 })
	api.put(fakeName, map[string]string{discovery.JWKSKey: string(good.JWKS())})
	testkit.Eventually(t, "a missing key is reported", func() bool { _, _, unreadable := served.counts(); return unreadable == 1 })
	if !served.serves(good) {
		t.Error("the good documents are not served any more")
	}
	configuration, jwks, err := documentsCache{folder: folder}.load()
	must(t, err)
	if string(configuration) != string(good.Configuration()) || string(jwks) != string(good.JWKS()) {
		t.Error("the cache does not have the last good documents")
	}
}

func TestConfigMapDoesNotTrustItsCache(t *testing.T) {
	foreign := documentData(newDocuments(t))
	foreign[discovery.ConfigurationKey] = strings.ReplaceAll(foreign[discovery.ConfigurationKey], "identity.example.com", "evil.example.com")
	for name, write := range map[string]func(t *testing.T, folder string){
		"garbage":     func(t *testing.T, folder string) { put(t, filepath.Join(folder, cacheFile), []byte("{")) },
		"empty":       func(t *testing.T, folder string) { put(t, filepath.Join(folder, cacheFile), nil) },
		"no document": func(t *testing.T, folder string) { put(t, filepath.Join(folder, cacheFile), []byte("{}")) },
		"a folder":    func(t *testing.T, folder string) { must(t, os.Mkdir(filepath.Join(folder, cacheFile), 0o700)) },
		"another issuer's": func(t *testing.T, folder string) {
			must(t, documentsCache{folder: folder}.save([]byte(foreign[discovery.ConfigurationKey]), []byte(foreign[discovery.JWKSKey])))
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, folder := newFakeAPI(t), t.TempDir()
			write(t, folder)
			api.setAway(true)
			served, _ := followConfigMap(t, api, folder)
			testkit.Eventually(t, "the outage is reported", func() bool { _, _, unreadable := served.counts(); return unreadable > 0 })
			if served.Loaded() {
				t.Error("the cached documents were loaded")
			}
			documents := newDocuments(t)
			api.put(fakeName, documentData(documents))
			api.setAway(false)
			testkit.Eventually(t, "the API's documents are served", func() bool { return served.serves(documents) })
		})
	}
}

func TestCacheIsPrivateAndWhole(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	cache := documentsCache{folder: folder}
	for _, text := range []string{"one", "<&>\" \u2028", strings.Repeat("<", discovery.MaxDocumentBytes)} {
		must(t, cache.save([]byte(text), []byte(text+"2")))
		configuration, jwks, err := cache.load()
		must(t, err)
		if string(configuration) != text || string(jwks) != text+"2" {
			t.Errorf("the saved documents come back as %.20q and %.20q", configuration, jwks)
		}
	}
	entries, err := os.ReadDir(folder)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("%d files are in the cache, want 1", len(entries))
	}
	info, err := os.Stat(filepath.Join(folder, cacheFile))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the cache has mode %04o", info.Mode().Perm())
	}
}

// FuzzCache reads any file as the cache.
func FuzzCache(f *testing.F) {
	f.Add([]byte(`{"configuration":"{}","jwks":"{}"}`))
	f.Add([]byte(`{"configuration":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		put(t, filepath.Join(folder, cacheFile), data)
		configuration, jwks, err := documentsCache{folder: folder}.load()
		if err != nil && (configuration != nil || jwks != nil) {
			t.Error("documents came with an error")
		}
	})
}
