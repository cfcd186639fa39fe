package keystore_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

const ringName = "signing-keys"

func TestSecret(t *testing.T) {
	keystoretest.Run(t, func(t *testing.T) func() keystore.Store {
		a := newAPI(t)
		return func() keystore.Store { return keystore.NewSecret(a.client(t), namespace, ringName) }
	})
}

// secretFilled returns a Secret that holds the first ring, with its API.
func secretFilled(t *testing.T) (*api, *keystore.Secret, string) {
	t.Helper()
	a := newAPI(t)
	store := keystore.NewSecret(a.client(t), namespace, ringName)
	testkit.Must(t, store.Save(t.Context(), firstRing(), ""))
	a.requests()
	return a, store, a.get(ringName).ResourceVersion
}

// dataOf is what a Secret with the ring holds.
func dataOf(t testing.TB, ring keys.Ring) map[string][]byte {
	t.Helper()
	encoded := testkit.Need(ring.Encode())(t)
	data := map[string][]byte{"ring.json": encoded.Document}
	for id, private := range encoded.Private {
		data[string(id)+".pem"] = private
	}
	return data
}

func ownSecret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ringName}, Type: keystore.SecretType, Data: data}
}

func TestSecretLayout(t *testing.T) {
	a, _, _ := secretFilled(t)
	want := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ringName, ResourceVersion: "1",
			Labels: map[string]string{"app.kubernetes.io/part-of": "credence"},
		},
		Type: "identity.credence.dev/key-ring",
		Data: dataOf(t, firstRing()),
	}
	if diff := cmp.Diff(want, a.get(ringName)); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
}

func TestSecretKeepsWhatOthersPutThere(t *testing.T) {
	a := newAPI(t)
	store := keystore.NewSecret(a.client(t), namespace, ringName)
	secret := ownSecret(dataOf(t, firstRing()))
	secret.Labels = map[string]string{"team": "platform", "app.kubernetes.io/part-of": "something"}
	secret.Annotations = map[string]string{"backup.example.com/include": "true"}
	secret.Finalizers = []string{"example.com/keep"}
	secret.Data["backup.pem"] = []byte("mine")
	secret.Data["README"] = []byte("mine too")
	version := a.put(secret)
	testkit.Must(t, store.Save(t.Context(), nextRing(), version))
	if got := a.requests(); got != "GET PUT" {
		t.Errorf("requests %s, want one write only", got)
	}
	want := secret.DeepCopy()
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	want.ResourceVersion = "2"
	want.Labels["app.kubernetes.io/part-of"] = "credence"
	want.Data = dataOf(t, nextRing())
	want.Data["backup.pem"] = []byte("mine")
	want.Data["README"] = []byte("mine too")
	if diff := cmp.Diff(want, a.get(ringName)); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
}

// A Secret that is made beforehand spares its writer the right to create Secrets, which can not be restricted to a name.
func TestSecretMadeBeforehandIsAnEmptyStore(t *testing.T) {
	a := newAPI(t)
	store := keystore.NewSecret(a.client(t), namespace, ringName)
	a.put(ownSecret(map[string][]byte{"README": []byte("mine")}))
	if _, _, err := store.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("load: %v, want ErrNotFound", err)
	}
	if err := store.Save(t.Context(), firstRing(), "1"); !errors.Is(err, keystore.ErrConflict) {
		t.Errorf("save over the version of a Secret without a ring: %v, want ErrConflict", err)
	}
	a.requests()
	got, version, err := keystore.LoadOrBootstrap(t.Context(), store, keystoretest.RSAOnce(), keystoretest.Now())
	testkit.Must(t, err)
	if methods := a.requests(); strings.Contains(methods, "POST") {
		t.Errorf("requests %s, want none to create", methods)
	}
	if secret := a.get(ringName); version != secret.ResourceVersion || string(secret.Data["README"]) != "mine" || len(secret.Data) != len(got.Keys)+2 {
		t.Errorf("version %s of the Secret with version %s and %d data keys", version, secret.ResourceVersion, len(secret.Data))
	}
}

// unusable returns Secrets that a store must refuse, and the error.
func unusable(t *testing.T) map[string]struct {
	secret *corev1.Secret
	want   string
} {
	changed := func(change func(secret *corev1.Secret)) *corev1.Secret {
		secret := ownSecret(dataOf(t, firstRing()))
		change(secret)
		return secret
	}
	key := string(firstRing().Keys[0].ID) + ".pem"
	other := dataOf(t, firstRing())[string(firstRing().Keys[1].ID)+".pem"]
	return map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"another type":    {changed(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), `its type is "Opaque" and not "identity.credence.dev/key-ring"`},
		"no type":         {changed(func(s *corev1.Secret) { s.Type = "" }), `its type is ""`},
		"too large":       {changed(func(s *corev1.Secret) { s.Data["README"] = make([]byte, 1<<20) }), "at most 1048576 are read"},
		"no ring.json":    {changed(func(s *corev1.Secret) { delete(s.Data, "ring.json") }), "no key ring.json"},
		"damaged ring":    {changed(func(s *corev1.Secret) { s.Data["ring.json"] = s.Data["ring.json"][:40] }), "ring.json: "},
		"key as ring":     {changed(func(s *corev1.Secret) { s.Data["ring.json"] = s.Data[key] }), "ring.json: not a ring document"},
		"no key":          {changed(func(s *corev1.Secret) { delete(s.Data, key) }), "data has no key " + key},
		"empty key":       {changed(func(s *corev1.Secret) { s.Data[key] = nil }), "keys[0]: private key of"},
		"damaged key":     {changed(func(s *corev1.Secret) { s.Data[key] = s.Data[key][:200] }), "keys[0]: private key of"},
		"key of another":  {changed(func(s *corev1.Secret) { s.Data[key] = other }), "keys[0].kid"},
		"only other keys": {changed(func(s *corev1.Secret) { s.Data = map[string][]byte{key: other} }), "no key ring.json"},
	}
}

func TestSecretRefusesWhatIsNoRing(t *testing.T) {
	for name, c := range unusable(t) {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			store := keystore.NewSecret(a.client(t), namespace, ringName)
			a.put(c.secret)
			before := a.get(ringName)
			_, _, err := store.Load(t.Context())
			if !errors.Is(err, keystore.ErrUnusable) || errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("load: %v, want ErrUnusable", err)
			}
			for _, part := range []string{c.want, "Secret credence-system/signing-keys"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("load: %v, want an error with %q", err, part)
				}
			}
			mustHide(t, err, c.secret.Data)
			if _, _, err := keystore.LoadOrBootstrap(t.Context(), store, keystoretest.RSAOnce(), keystoretest.Now()); !errors.Is(err, keystore.ErrUnusable) {
				t.Errorf("load or bootstrap: %v, want ErrUnusable", err)
			}
			if err := store.Save(t.Context(), nextRing(), ""); err == nil {
				t.Error("a first ring was saved over what is there")
			}
			if c.secret.Type != keystore.SecretType || strings.HasPrefix(name, "too") {
				if err := store.Save(t.Context(), nextRing(), before.ResourceVersion); !errors.Is(err, keystore.ErrUnusable) {
					t.Errorf("save: %v, want ErrUnusable", err)
				}
			}
			if diff := cmp.Diff(before, a.get(ringName)); diff != "" {
				t.Errorf("the Secret was changed (-before +after):\n%s", diff)
			}
			if methods := a.requests(); strings.Trim(methods, "GET ") != "" {
				t.Errorf("requests %s, want no write", methods)
			}
		})
	}
}

func TestSecretIsNeverTooLarge(t *testing.T) {
	a := newAPI(t)
	store := keystore.NewSecret(a.client(t), namespace, ringName)
	version := a.put(ownSecret(map[string][]byte{"README": make([]byte, 1<<20-100)}))
	err := store.Save(t.Context(), firstRing(), "")
	if err == nil || !strings.Contains(err.Error(), "at most 1048576 are allowed") || errors.Is(err, keystore.ErrConflict) {
		t.Errorf("save: %v, want an error with the limit", err)
	}
	if got := a.get(ringName).ResourceVersion; got != version {
		t.Errorf("the Secret was written, its version is %s", got)
	}
}

func TestSecretThatIsImmutable(t *testing.T) {
	a, store, _ := secretFilled(t)
	secret, immutable := a.get(ringName), true
	secret.Immutable = &immutable
	version := a.put(secret)
	if _, _, err := store.Load(t.Context()); err != nil {
		t.Errorf("load: %v", err)
	}
	if err := store.Save(t.Context(), nextRing(), version); err == nil || !strings.Contains(err.Error(), "it is immutable") {
		t.Errorf("save: %v, want such an error", err)
	}
}

// A write between the read and the write of a Save makes it a conflict, and stays.
func TestSecretChangedWhileItIsSaved(t *testing.T) {
	cases := map[string]struct {
		filled  bool
		between func(a *api)
		write   string
	}{
		"replaced":  {true, func(a *api) { a.put(ownSecret(map[string][]byte{"other": nil})) }, http.MethodPut},
		"annotated": {true, func(a *api) { s := a.get(ringName); s.Annotations = map[string]string{"a": "b"}; a.put(s) }, http.MethodPut},
		"deleted":   {true, func(a *api) { a.remove(ringName) }, http.MethodPut},
		"made anew": {true, func(a *api) { s := a.get(ringName); a.remove(ringName); a.put(s) }, http.MethodPut},
		"created":   {false, func(a *api) { a.put(ownSecret(nil)) }, http.MethodPost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			store := keystore.NewSecret(a.client(t), namespace, ringName)
			version := ""
			if c.filled {
				version = a.put(ownSecret(dataOf(t, firstRing())))
			}
			var left *corev1.Secret
			a.answer(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == c.write {
					c.between(a)
					left = a.get(ringName)
				}
				return false
			})
			if err := store.Save(t.Context(), nextRing(), version); !errors.Is(err, keystore.ErrConflict) {
				t.Errorf("save: %v, want ErrConflict", err)
			}
			if diff := cmp.Diff(left, a.get(ringName)); diff != "" {
				t.Errorf("the other writer's Secret was changed (-left +got):\n%s", diff)
			}
		})
	}
}

func TestSecretWithoutVersionIsNotReplaced(t *testing.T) {
	a, store, _ := secretFilled(t)
	secret := a.get(ringName)
	secret.ResourceVersion = ""
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			writeJSON(t, w, secret)
		}
		return r.Method == http.MethodGet
	})
	if _, _, err := store.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "without a resourceVersion") {
		t.Errorf("load: %v, want such an error", err)
	}
	if err := store.Save(t.Context(), nextRing(), ""); err == nil || strings.Contains(a.requests(), "PUT") {
		t.Errorf("save: %v, want an error and no write", err)
	}
}

func TestSecretStoredOtherwiseIsNotSaved(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			a := newAPI(t)
			store, version := keystore.NewSecret(a.client(t), namespace, ringName), ""
			if method == http.MethodPut {
				version = a.put(ownSecret(dataOf(t, firstRing())))
			}
			changed := ownSecret(dataOf(t, nextRing()))
			changed.Data["ring.json"] = append(changed.Data["ring.json"], ' ')
			a.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == method {
					a.put(changed)
					writeJSON(t, w, a.get(ringName))
				}
				return r.Method == method
			})
			err := store.Save(t.Context(), nextRing(), version)
			if err == nil || errors.Is(err, keystore.ErrConflict) || !strings.Contains(err.Error(), "another Secret than it was sent") {
				t.Errorf("save: %v, want such an error", err)
			}
			mustHide(t, err, changed.Data)
		})
	}
}

// mustHide fails if an error, or anything else that is shown, has a part of a private key.
func mustHide(t *testing.T, shown any, data map[string][]byte) {
	t.Helper()
	text := sprint(shown)
	for name, value := range data {
		if !strings.HasSuffix(name, ".pem") {
			continue
		}
		if part, found := partOf(text, value); found {
			t.Errorf("%q of %s is shown in: %.2000s", part, name, text)
		}
	}
}

// FuzzSecretLoad: whatever the API answers, Load gives a ring that keeps the rules, or an error that names the Secret and
// repeats nothing of the answer that is longer than a name.
func FuzzSecretLoad(f *testing.F) {
	whole := ownSecret(dataOf(f, firstRing()))
	whole.APIVersion, whole.Kind, whole.ResourceVersion = "v1", "Secret", "1"
	good := encodeJSON(f, whole)
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"kind":"Secret"`), nil, 1))
	f.Add(bytes.Replace(good, []byte(`"kind":"Secret",`), nil, 1))
	f.Add(bytes.Replace(good, []byte(`"apiVersion":"v1"`), []byte(`"apiVersion":"v9"`), 1))
	f.Add(bytes.Replace(good, []byte(`"resourceVersion":"1"`), []byte(`"resourceVersion":1`), 1))
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"message":"` + strings.Repeat("secret", 20) + `"}`))
	f.Add([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"1"},"type":"identity.credence.dev/key-ring","data":{"ring.json":"e30="}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ring, version, err := keystore.NewSecret(answering(t, body), namespace, ringName).Load(context.Background())
		switch {
		case err == nil && version == "":
			t.Error("a ring without a version was loaded")
		case err == nil:
			testkit.Expect(t, ring.Validate(), "loaded a ring that is not valid")
		default:
			if !strings.Contains(err.Error(), "Secret credence-system/signing-keys") {
				t.Errorf("the error does not name the Secret: %v", err)
			}
			for i := 0; i+60 <= len(body); i++ {
				if strings.Contains(err.Error(), string(body[i:i+60])) {
					t.Fatalf("the error repeats the answer: %v", err)
				}
			}
		}
	})
}
