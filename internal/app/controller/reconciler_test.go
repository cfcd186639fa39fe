package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/internal/keyring/report"
	"github.com/credence-id/credence/test/testkit"
)

// served is an API with one KeyRing, whose status can be written.
func served(t *testing.T, ring *v1alpha1.KeyRing) keyRings {
	t.Helper()
	ring.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "KeyRing"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			var next v1alpha1.KeyRing
			testkit.Expect(t, json.NewDecoder(r.Body).Decode(&next))
			ring.Status = next.Status
		}
		w.Header().Set("Content-Type", "application/json")
		testkit.Expect(t, json.NewEncoder(w).Encode(ring))
	}))
	t.Cleanup(server.Close)
	rings := testkit.Need(newKeyRings(&rest.Config{Host: server.URL}))(t)
	return rings
}

// The KeyRing and the ring were put back together, from before a revocation: the controller, which was not restarted, is the
// only one that knows of it.
func TestKeyRingIsGivenWhatIsRemembered(t *testing.T) {
	old, _ := keystoretest.Rings()
	object := &v1alpha1.KeyRing{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.WorkloadIdentities}}
	for _, key := range old.Keys {
		object.Status.Keys = append(object.Status.Keys, v1alpha1.KeyStatus{ID: string(key.ID), Algorithm: string(key.Algorithm), State: string(key.State)})
	}
	stolen := old.Keys[0]
	past := old.Past()
	delete(past.Published, stolen.ID)
	past.Published["later"] = stolen.Algorithm
	past.Revoked = []keys.Compromised{{
		ID: stolen.ID, Algorithm: stolen.Algorithm, RevokedAt: keystoretest.Now(), LastExpiry: keystoretest.Now().Add(time.Hour),
		Cause: keys.Cause{By: "jane", Reason: "leaked"},
	}}
	r := &reconciler{
		rings: served(t, object), log: slog.New(slog.DiscardHandler), events: events{record.NewFakeRecorder(10)},
		recorder: keyring.NewRecorder(prometheus.NewRegistry(), keystoretest.Now),
		past:     func(context.Context) (keys.Past, error) { return past, nil },
	}
	r.onFailure(t.Context(), fmt.Errorf("%w (a key)", keyring.ErrSuperseded))
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != "RingSuperseded" {
		t.Errorf("condition %+v", ready)
	}
	got := report.Past(object.Status)
	if diff := cmp.Diff(past, got); diff != "" {
		t.Errorf("the KeyRing remembers (-want +got):\n%s", diff)
	}
	if last := object.Status.Keys[len(object.Status.Keys)-1]; last.ID != "later" || last.State != string(keys.Retiring) {
		t.Errorf("a published key that the KeyRing did not know: %+v", last)
	}
	if old.Lacks(got) == "" {
		t.Error("an API server that reads this KeyRing would sign with the old ring")
	}
	written := object.Status.DeepCopy()
	r.onFailure(t.Context(), fmt.Errorf("%w (a key)", keyring.ErrSuperseded))
	if diff := cmp.Diff(written, &object.Status); diff != "" {
		t.Errorf("again (-first +second):\n%s", diff)
	}
}
