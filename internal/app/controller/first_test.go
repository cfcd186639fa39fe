package controller

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// A replica that does not lead becomes ready also if the first ring is made long after its start.
func TestLateFirstRing(t *testing.T) {
	store := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	ring := keyring.NewFollower(keyring.Following{Store: store, Clock: clock.RealClock{}, Random: rand.Float64})
	ended := make(chan struct{})
	go func() {
		awaitFirst(t.Context(), ring)
		close(ended)
	}()
	ready := readiness(ring)
	if ready() == nil {
		t.Error("ready without a ring")
	}
	first, _ := keystoretest.Rings()
	testkit.Must(t, store.Save(t.Context(), first, ""))
	testkit.Eventually(t, "it is ready", func() bool { return ready() == nil })
	<-ended
}
