package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/fake"
)

// In a storage that was lost nothing is created, and all else is served.
func TestNothingIsCreatedInALostStorage(t *testing.T) {
	why := "the storage is empty"
	b := &beginning{}
	served := b.guard(func(next http.Handler, _ *genericapiserver.Config) http.Handler { return next })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}), nil)
	ask := func(verb, resource string) *httptest.ResponseRecorder {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: verb, Resource: resource}
		asked := httptest.NewRequest(http.MethodPost, "/", nil)
		got := httptest.NewRecorder()
		served.ServeHTTP(got, asked.WithContext(request.WithRequestInfo(context.Background(), info)))
		return got
	}
	if got := ask("create", "workloadidentities"); got.Code != http.StatusCreated {
		t.Errorf("with a storage: %d", got.Code)
	}
	b.empty.Store(&why)
	for _, creation := range [][2]string{{"create", "workloadidentities"}, {"patch", "workloadidentities"}, {"create", "credentialsbindings"}} { // a server-side apply creates, too
		if got := ask(creation[0], creation[1]); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `"message":"the storage is empty"`) {
			t.Errorf("%v without: %d %s", creation, got.Code, got.Body)
		}
	}
	for _, other := range [][2]string{{"list", "workloadidentities"}, {"create", "keyrings"}} {
		if got := ask(other[0], other[1]); got.Code != http.StatusCreated {
			t.Errorf("%v without a storage: %d", other, got.Code)
		}
	}
}

// The documents of one place were put back: what is newer in the other place stays published, and the revoked key does not.
func TestOldDocumentsDoNotReplaceNewerOnes(t *testing.T) {
	const issuer = "https://issuer.example"
	old, newer := keystoretest.Rings()
	stolen := old.Keys[0]
	remaining := slices.DeleteFunc(newer.Published(), func(k identity.PublicKey) bool { return k.ID == stolen.ID })
	folder := publication.Directory(t.TempDir())
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "documents"}})
	config := publication.ConfigMap{Client: client.CoreV1(), Namespace: "ns", Name: "documents"}
	publish := func(place publication.Place, published []identity.PublicKey) {
		t.Helper()
		documents := testkit.Need(discovery.New(issuer, published))(t)
		testkit.Must(t, testkit.Err(place.Publish(t.Context(), publication.Issue{Documents: documents})))
	}
	past := keys.Past{}
	a := assembly{
		o:       &Options{PublishConfigMap: "ns/documents", PublishDir: string(folder)},
		checked: checked{issuer: issuer, configMap: types.NamespacedName{Namespace: "ns", Name: "documents"}},
		client:  client,
		keySource: ownRing{
			store:    &keyring.Remembering{Outside: func(context.Context) (keys.Past, error) { return past, nil }},
			follower: keyring.NewFollower(keyring.Following{}),
		},
	}
	publish(config, old.Published())
	publish(folder, remaining)
	if got, err := a.withoutKeys(t.Context()); err == nil {
		t.Errorf("nothing is revoked, and %v would be published", got.KeyIDs())
	}
	past.Revoked = []keys.Compromised{{ID: stolen.ID, Algorithm: stolen.Algorithm, RevokedAt: keystoretest.Now()}}
	got := testkit.Need(a.withoutKeys(t.Context()))(t)
	var want []identity.KeyID
	for _, key := range append(old.Published(), newer.Published()...) {
		if key.ID != stolen.ID {
			want = append(want, key.ID)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if ids := slices.Sorted(slices.Values(got.KeyIDs())); !slices.Equal(ids, want) {
		t.Errorf("published %v, want %v", ids, want)
	}
	if len(got.Revoked) != 1 || got.Revoked[0].ID != stolen.ID {
		t.Errorf("revoked %v", got.Revoked)
	}
}

// keptFake is a storage: with a KeyRing, or the error of reading it.
type keptFake struct {
	keyRing    error
	identities bool
	ensured    bool
	looked     func() // is called when identities are looked for
}

func (f *keptFake) KeyRing(context.Context) (*identityv1alpha1.KeyRing, error) {
	return &identityv1alpha1.KeyRing{}, f.keyRing
}

func (f *keptFake) Ensure(context.Context) error {
	f.ensured = true
	return nil
}

func (f *keptFake) HasIdentities(context.Context) (bool, error) {
	if f.looked != nil {
		f.looked()
	}
	return f.identities, nil
}

// unwritable is a store of keys in which none can be stored.
type unwritable struct{ keystore.Store }

func (unwritable) Save(context.Context, keys.Ring, string) error { return errors.New("disk full") }

// Identities without keys would be a past: none is created until the first keys are stored, however often that is tried.
func TestNothingIsCreatedBeforeTheFirstKeys(t *testing.T) {
	store := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	a := assembly{
		o: &Options{PublishDir: t.TempDir()}, checked: checked{issuer: "https://issuer.example"}, log: slog.New(slog.DiscardHandler), begun: newBeginning(),
		keySource: ownRing{
			store:    &keyring.Remembering{Store: unwritable{store}, Outside: func(context.Context) (keys.Past, error) { return keys.Past{}, nil }},
			follower: keyring.NewFollower(keyring.Following{}),
		},
	}
	closed := func() {
		t.Helper()
		if a.begun.empty.Load() == nil {
			t.Error("identities may be created")
		}
	}
	stored := &keptFake{keyRing: apierrors.NewNotFound(identityv1alpha1.Resource("keyrings"), identityv1alpha1.WorkloadIdentities), looked: closed}
	for range 2 {
		if err := a.tryBegin(t.Context(), stored); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("got %v", err)
		}
		closed()
		stored.keyRing = nil // it was made
	}
}

// Identities may be created once it is known that the storage has what was in it.
func TestBeginningOfAStorage(t *testing.T) {
	const issuer = "https://issuer.example"
	_, ring := keystoretest.Rings()
	documents := testkit.Need(discovery.New(issuer, ring.Published()))(t)
	history := map[identity.KeyID]identity.Algorithm{ring.Keys[0].ID: ring.Keys[0].Algorithm}
	unknown := apierrors.NewNotFound(identityv1alpha1.Resource("keyrings"), identityv1alpha1.WorkloadIdentities)
	for name, test := range map[string]struct {
		keyRing           error
		ring, published   bool
		past              keys.Past
		identities        bool
		unreadable        bool
		creates, ensured  bool
		keys, refusedWith string
	}{
		"the first start":                    {keyRing: unknown, creates: true, ensured: true},
		"as it was":                          {ring: true, published: true, creates: true},
		"the keys are lost":                  {published: true, creates: true, keys: "the issuer has had keys"},
		"the storage is lost":                {keyRing: unknown, ring: true, published: true, keys: "the storage of the API server is empty", refusedWith: "although there are keys"},
		"both are lost":                      {keyRing: unknown, published: true, keys: "the issuer has had keys", refusedWith: "the issuer has had keys"},
		"identities alone":                   {identities: true, creates: true, keys: "the issuer has had keys"},
		"KeyRing history alone":              {past: keys.Past{Published: history}, creates: true, keys: "the issuer has had keys"},
		"the storage does not answer":        {keyRing: errors.New("no answer"), ring: true, keys: "no answer", refusedWith: "is not known yet"},
		"no KeyRing, and keys that are shut": {keyRing: unknown, unreadable: true, keys: "other users have access", refusedWith: "is not known yet"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := publication.Directory(t.TempDir())
			if test.published {
				testkit.Must(t, testkit.Err(folder.Publish(t.Context(), publication.Issue{Documents: documents})))
			}
			path := filepath.Join(t.TempDir(), "keys")
			store, err := keystore.OpenDirectory(path)
			testkit.Must(t, err)
			if test.ring {
				testkit.Must(t, store.Save(t.Context(), ring, ""))
			}
			if test.unreadable {
				testkit.Must(t, os.Chmod(path, 0o777))
			}
			a := assembly{
				o: &Options{PublishDir: string(folder)}, checked: checked{issuer: issuer}, log: slog.New(slog.DiscardHandler), begun: newBeginning(),
				keySource: ownRing{
					store:    &keyring.Remembering{Store: store, Outside: func(context.Context) (keys.Past, error) { return test.past, nil }},
					follower: keyring.NewFollower(keyring.Following{}),
				},
			}
			stored := &keptFake{keyRing: test.keyRing, identities: test.identities}
			err = a.tryBegin(t.Context(), stored)
			if test.keys == "" && err == nil {
				a.begun.empty.Store(nil) // as begin does
			} else if err == nil || !strings.Contains(err.Error(), test.keys) {
				t.Errorf("got %v, want %q", err, test.keys)
			}
			why := ""
			if text := a.begun.empty.Load(); text != nil {
				why = *text
			}
			if (why == "") != test.creates || !strings.Contains(why, test.refusedWith) || stored.ensured != test.ensured {
				t.Errorf("identities are refused with %q, and a KeyRing is made: %t; want %q, %t", why, stored.ensured, test.refusedWith, test.ensured)
			}
		})
	}
}
