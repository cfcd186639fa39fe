package report_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/internal/keyring/report"
	"github.com/credence-id/credence/test/testkit"
)

func observe(t *testing.T, ring keys.Ring, now time.Time, before v1alpha1.KeyRingStatus, gates ...keys.Gate) v1alpha1.KeyRingStatus {
	t.Helper()
	settings := testkit.Need(keys.Settings{}.Complete())(t)
	view := keys.View{Settings: settings, Gates: gates, Now: now}
	status := report.Status(report.Observation{
		Issuer: "https://issuer.example", Ring: ring, View: view, Plan: ring.Plan(view), Generation: 3, Before: before.Conditions,
		RelyingParties: []v1alpha1.RelyingParty{{Name: "bank", KnownKeys: []string{string(ring.Keys[0].ID)}}},
	})
	// As it comes back from the API.
	content := testkit.Need(json.Marshal(status))(t)
	var stored v1alpha1.KeyRingStatus
	testkit.Must(t, json.Unmarshal(content, &stored))
	return stored
}

// A status is written when something has changed, and not every ten seconds.
func TestStatusIsTheSameWhileNothingChanges(t *testing.T) {
	ring, next := keystoretest.Rings()
	first := observe(t, ring, keystoretest.Now(), v1alpha1.KeyRingStatus{})
	later := observe(t, ring, keystoretest.Now().Add(13*time.Minute+7*time.Millisecond), first)
	if !equality.Semantic.DeepEqual(first, later) {
		t.Errorf("13 minutes later (-first +later):\n%s", cmp.Diff(first, later))
	}
	if changed := observe(t, next, keystoretest.Now(), first); equality.Semantic.DeepEqual(first, changed) {
		t.Error("another ring has the same status")
	}
	if first.Signing == "" || len(first.Keys) != 4 || len(first.Next) != 2 || first.NextChange == nil || len(first.RelyingParties) != 1 || len(first.RelyingParties[0].MissingKeys) != 3 {
		t.Errorf("status: %+v", first)
	}
}

func TestConditionsSayWhatIsWrong(t *testing.T) {
	ring, _ := keystoretest.Rings()
	month := keystoretest.Now().Add(31 * 24 * time.Hour)
	held := observe(t, ring, month, v1alpha1.KeyRingStatus{}, keys.Gate{Name: "bank"})
	rotating := meta.FindStatusCondition(held.Conditions, v1alpha1.ConditionRotating)
	if rotating == nil || rotating.Status != "False" || rotating.Reason != string(keys.AwaitingGates) || !meta.IsStatusConditionTrue(held.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("behind a gate: %+v", held.Conditions)
	}
	signless := ring
	signless.Keys = nil
	for _, key := range ring.Keys {
		if key.State != keys.Active || key.Algorithm != identity.ES256 {
			signless.Keys = append(signless.Keys, key)
		}
	}
	status := observe(t, signless, keystoretest.Now(), held)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != "False" || ready.Reason != string(keys.NoSigningKey) || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionRotating) {
		t.Errorf("without a key that signs: %+v", status.Conditions)
	}
}

// A decision by a status is that of the controller that wrote it, and activates nothing before the first status.
func TestViewOfAStatus(t *testing.T) {
	ring, _ := keystoretest.Rings()
	object := &v1alpha1.KeyRing{Spec: v1alpha1.KeyRingSpec{RelyingParties: []v1alpha1.RelyingParty{{Name: "bank", KnownKeys: []string{"a", "b"}}}}}
	bank := []keys.Gate{{Name: "bank", Knows: []identity.KeyID{"a", "b"}}}

	none := report.View(object)
	if none.Documents == nil || len(none.Documents.Knows) != 0 {
		t.Errorf("before there is a status, the documents show %+v", none.Documents)
	}
	object.Status = observe(t, ring, keystoretest.Now(), v1alpha1.KeyRingStatus{})
	object.Status.Documents = &v1alpha1.PublishedDocuments{From: "ConfigMap", Keys: []string{"c"}}
	settings := testkit.Need(keys.Settings{}.Complete())(t)
	want := keys.View{Settings: settings, Gates: bank, Documents: &keys.Gate{Name: "ConfigMap", Knows: []identity.KeyID{"c"}}}
	if diff := cmp.Diff(want, report.View(object)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}
