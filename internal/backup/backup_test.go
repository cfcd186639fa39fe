package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

const issuer = "https://identity.example.com"

var now = time.Date(2026, 11, 22, 19, 30, 0, 123, time.UTC)

func workloadIdentity(name string, change func(*v1alpha1.WorkloadIdentity)) v1alpha1.WorkloadIdentity {
	uid := fmt.Sprintf("6f1c7c5e-0000-4000-8000-%012x", len(name))
	wi := v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(uid), ResourceVersion: "7", Generation: 3,
			Labels: map[string]string{"team": "a"}, OwnerReferences: []metav1.OwnerReference{{Name: "gone"}}, Finalizers: []string{"example.com/f"},
		},
		Spec:   v1alpha1.WorkloadIdentitySpec{Audiences: []string{"a", "b"}, TargetSystem: v1alpha1.TargetSystem{Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"<x>"}`)}}},
		Status: v1alpha1.WorkloadIdentityStatus{Issuer: issuer, Sub: "gardener.cloud:workloadidentity:shop:" + name + ":" + uid, Conditions: []metav1.Condition{{Type: "Ready"}}},
	}
	if change != nil {
		change(&wi)
	}
	return wi
}

func sample(t testing.TB) *backup.Backup {
	t.Helper()
	ring := identityv1alpha1.KeyRing{
		Spec:   identityv1alpha1.KeyRingSpec{RelyingParties: []identityv1alpha1.RelyingParty{{Name: "vault", KnownKeys: []string{"k"}}}},
		Status: identityv1alpha1.KeyRingStatus{Settings: &identityv1alpha1.KeyRingSettings{MaxAge: metav1.Duration{Duration: time.Hour}}},
	}
	foreign := workloadIdentity("foreign", func(wi *v1alpha1.WorkloadIdentity) { wi.Status.Issuer = "https://other.example.com" })
	b, left := backup.New(issuer, []v1alpha1.WorkloadIdentity{workloadIdentity("pay", nil), workloadIdentity("cart", nil), foreign}, ring, "v1", now)
	if diff := cmp.Diff([]string{"shop/foreign"}, left); diff != "" {
		t.Fatalf("left out (-want +got):\n%s", diff)
	}
	return b
}

func TestBackup(t *testing.T) {
	b := sample(t)
	if len(b.Identities) != 2 || b.Identities[0].Name != "cart" {
		t.Fatalf("identities %v", b.Identities)
	}
	cart := b.Identities[0]
	if cart.ResourceVersion != "" || cart.OwnerReferences != nil || cart.Finalizers != nil || cart.Status.Conditions != nil || cart.Labels["team"] != "a" {
		t.Errorf("what is kept of an identity: %+v", cart)
	}
	file := testkit.Need(b.Encode(nil))(t)
	got := testkit.Need(backup.Decode(file, nil))(t)
	if again, err := got.Encode(nil); err != nil || !bytes.Equal(file, again) {
		t.Errorf("read and written again it differs: %v", err)
	}
	if plan := got.Plan([]v1alpha1.WorkloadIdentity{workloadIdentity("pay", nil), workloadIdentity("cart", nil)}, identityv1alpha1.KeyRing{}); plan.Same != 2 || len(plan.Create)+len(plan.Newer) != 0 || len(plan.RelyingParties) != 1 {
		t.Errorf("against the cluster that it was made of: %+v", plan)
	}
}

// No byte of a file can be changed without notice.
func TestDamage(t *testing.T) {
	file := testkit.Need(sample(t).Encode(nil))(t)
	for i := range len(file) - 1 {
		changed := bytes.Clone(file)
		changed[i] ^= 1
		if got, err := backup.Decode(changed, nil); err == nil {
			// White space and the case of names do not change the content.
			again, err := got.Encode(nil)
			if err != nil || !bytes.Equal(again, file) {
				t.Fatalf("byte %d was changed without an error", i)
			}
		}
		if _, err := backup.Decode(file[:i], nil); !errors.Is(err, backup.ErrDamaged) {
			t.Fatalf("a file cut at byte %d: %v", i, err)
		}
	}
	other := bytes.Replace(file, []byte(`"credenceBackup":1`), []byte(`"credenceBackup":2`), 1)
	if _, err := backup.Decode(other, nil); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

// A file of the right checksum is refused where it has more than a backup keeps of an identity.
func TestChanged(t *testing.T) {
	file := testkit.Need(sample(t).Encode(nil))(t)
	forged := func(place, change string) []byte {
		var envelope struct {
			CredenceBackup int             `json:"credenceBackup"`
			SHA256         string          `json:"sha256"`
			Content        json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(file, &envelope); err != nil || !bytes.Contains(envelope.Content, []byte(place)) {
			t.Fatalf("%s in %s: %v", place, envelope.Content, err)
		}
		envelope.Content = bytes.Replace(envelope.Content, []byte(place), []byte(change), 1)
		envelope.SHA256 = fmt.Sprintf("%x", sha256.Sum256(envelope.Content))
		changed := testkit.Need(json.Marshal(envelope))(t)
		return changed
	}
	const name = `"name":"cart"`
	testkit.Must(t, testkit.Err(backup.Decode(forged(name, name), nil)), "unchanged")
	for place, more := range map[string][]string{
		name: {
			`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"u"}]`, `"finalizers":["example.com/f"]`, `"generateName":"cart-"`,
			`"deletionTimestamp":"2026-11-22T19:30:00Z"`, `"resourceVersion":"7"`, `"managedFields":[{"manager":"m"}]`,
		},
		`"kind":"WorkloadIdentity"`: {`"kind":"Secret"`},
		`"status":{`:                {`"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"r","message":"m"}],`},
	} {
		for _, change := range more {
			if place == name {
				change = name + "," + change
			}
			if _, err := backup.Decode(forged(place, change), nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "shop/cart: it has more than is kept of one") {
				t.Errorf("%s: %v", change, err)
			}
		}
	}
}

// Fields of a newer version are never left out without notice.
func TestFieldsOfANewerVersion(t *testing.T) {
	content := []byte(`{"issuer":"` + issuer + `","program":"v9","identities":[{"spec":{"later":1}}]}`)
	file := fmt.Appendf(nil, `{"credenceBackup":1,"sha256":"%x","content":%s}`, sha256.Sum256(content), content)
	_, err := backup.Decode(file, nil)
	if err == nil || errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), `"identities[0].spec.later"): use the version of Credence that made it, v9`) {
		t.Errorf("read a backup with another field: %v", err)
	}
	b := sample(t)
	b.Identities[0].Annotations = map[string]string{v1alpha1.AnnotationNewerFields: "spec.later"}
	if _, err := b.Encode(nil); err == nil || !strings.Contains(err.Error(), "shop/cart: it has fields of a newer version of Credence than the API server is (spec.later)") {
		t.Errorf("back up what an older server shows: %v", err)
	}
}

func TestEncryption(t *testing.T) {
	b := sample(t)
	ring := testkit.Need(keys.Bootstrap(keys.NewPrivate, now))(t)
	testkit.Must(t, b.AddRing(ring))
	if _, err := b.Encode(nil); err == nil {
		t.Error("a backup with keys was not encrypted")
	}
	if text := fmt.Sprintf("%v %+v", *b, b.Ring); strings.Contains(text, "PRIVATE") {
		t.Error("a key is printed")
	}
	key := testkit.Need(age.GenerateX25519Identity())(t)
	other := testkit.Need(age.GenerateX25519Identity())(t)
	file := testkit.Need(b.Encode([]age.Recipient{key.Recipient()}))(t)
	got := testkit.Need(backup.Decode(file, []age.Identity{key}))(t)
	if restored, err := got.Ring.Keys(); err != nil || len(restored.Keys) != len(ring.Keys) || restored.Keys[0].ID != ring.Keys[0].ID {
		t.Errorf("keys: %v", err)
	}
	if _, err := backup.Decode(file, nil); !errors.Is(err, backup.ErrEncrypted) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := backup.Decode(file, []age.Identity{other}); !errors.Is(err, backup.ErrRecipient) {
		t.Errorf("with another key: %v", err)
	}
	for _, damaged := range [][]byte{file[:len(file)-1], append(bytes.Clone(file), 1)} {
		if _, err := backup.Decode(damaged, []age.Identity{key}); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("damaged: %v", err)
		}
	}
}

// Objects of the cluster are never changed.
func TestPlan(t *testing.T) {
	b := sample(t)
	here := []v1alpha1.WorkloadIdentity{
		workloadIdentity("pay", func(wi *v1alpha1.WorkloadIdentity) { wi.Spec.Audiences = []string{"c"} }),
		workloadIdentity("moved", func(wi *v1alpha1.WorkloadIdentity) { wi.UID = b.Identities[0].UID }),
	}
	ring := identityv1alpha1.KeyRing{Spec: identityv1alpha1.KeyRingSpec{RelyingParties: []identityv1alpha1.RelyingParty{{Name: "vault"}}}}
	want := backup.Plan{Newer: []backup.Difference{
		{Object: "shop/cart", Field: "name", Backup: "shop/cart", Here: "shop/moved"},
		{Object: "shop/pay", Field: "audiences", Backup: `["a","b"]`, Here: `["c"]`},
		{Object: "KeyRing", Field: "relying party vault", Backup: `["k"]`, Here: "null"},
	}}
	if diff := cmp.Diff(want, b.Plan(here, ring)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if plan := b.Plan(here[:1], ring); len(plan.Create) != 1 || plan.Create[0].Name != "cart" {
		t.Errorf("what is created beside others: %+v", plan.Create)
	}
}

func TestOnly(t *testing.T) {
	for _, c := range []struct {
		only, want, unknown []string
	}{
		{[]string{"shop"}, []string{"cart", "pay"}, []string{}},
		{[]string{"shop/pay"}, []string{"pay"}, []string{}},
		{[]string{"shop/pay", "pay", "other"}, []string{"pay"}, []string{"pay", "other"}},
	} {
		b := sample(t)
		unknown := b.Only(c.only)
		var got []string
		for _, wi := range b.Identities {
			got = append(got, wi.Name)
		}
		if diff := cmp.Diff(c.want, got) + cmp.Diff(c.unknown, unknown); diff != "" || b.KeyRing.RelyingParties != nil {
			t.Errorf("only %v (-want +got):\n%s", c.only, diff)
		}
	}
}

func FuzzDecode(f *testing.F) {
	file, err := sample(f).Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte("age-encryption.org/v1\n"))
	f.Add([]byte(`{"credenceBackup":1,"sha256":"","content":{}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := backup.Decode(file, nil)
		if err != nil {
			return
		}
		testkit.Expect(t, testkit.Err(b.Encode(nil)), "what was read can not be written")
	})
}
