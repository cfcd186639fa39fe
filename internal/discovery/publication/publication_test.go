package publication_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

func documents(t *testing.T) discovery.Documents {
	t.Helper()
	key := testkit.Need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	public := testkit.Need(identity.NewPublicKey(&key.PublicKey))(t)
	made := testkit.Need(discovery.New("https://issuer.example", []identity.PublicKey{public}))(t)
	return made
}

func TestDirectory(t *testing.T) {
	dir := publication.Directory(filepath.Join(t.TempDir(), "public"))
	for round := range 3 {
		want := publication.Issue{Documents: documents(t), NextChange: time.Date(2026, 3, 1+round, 13, 0, 0, 0, time.FixedZone("CET", 3600))}
		for attempt, expected := range []bool{true, false} {
			changed, err := dir.Publish(t.Context(), want)
			if err != nil || changed != expected {
				t.Fatalf("round %d, attempt %d: changed %v, %v, want %v", round, attempt, changed, err, expected)
			}
		}
		for name, content := range map[string][]byte{
			discovery.ConfigurationKey: want.Configuration(), discovery.JWKSKey: want.JWKS(),
			discovery.NextChangeKey: fmt.Appendf(nil, "2026-03-0%dT12:00:00Z", 1+round),
		} {
			if got, err := os.ReadFile(filepath.Join(string(dir), name)); err != nil || !bytes.Equal(got, content) {
				t.Errorf("round %d: %s holds %s, %v", round, name, got, err)
			}
		}
		if got, err := dir.Keys(t.Context(), want.Issuer()); err != nil || !slices.Equal(got, want.KeyIDs()) {
			t.Errorf("round %d: keys %v, %v, want %v", round, got, err, want.KeyIDs())
		}
		if got, err := dir.Keys(t.Context(), "https://another.example"); err == nil {
			t.Errorf("round %d: keys %v of another issuer", round, got)
		}
		entries, err := os.ReadDir(string(dir))
		if err != nil || len(entries) != 5 {
			t.Errorf("round %d: %v, %v, want three links, the link to the version and the version", round, entries, err)
		}
	}
}

func TestConfigMapKeepsWhatIsNotItsOwn(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "documents", Labels: map[string]string{"kept": "yes"}},
		Data:       map[string]string{"other": "kept"},
	})
	place := publication.ConfigMap{Client: client.CoreV1(), Namespace: "ns", Name: "documents"}
	want := publication.Issue{Documents: documents(t)}
	for attempt, expected := range []bool{true, false} {
		if changed, err := place.Publish(t.Context(), want); err != nil || changed != expected {
			t.Fatalf("attempt %d: changed %v, %v, want %v", attempt, changed, err, expected)
		}
	}
	got := testkit.Need(client.CoreV1().ConfigMaps("ns").Get(t.Context(), "documents", metav1.GetOptions{}))(t)
	wantData := map[string]string{"other": "kept", discovery.ConfigurationKey: string(want.Configuration()), discovery.JWKSKey: string(want.JWKS()), discovery.NextChangeKey: ""}
	if diff := cmp.Diff(wantData, got.Data); diff != "" || got.Labels["kept"] != "yes" {
		t.Errorf("labels %v, data (-want +got):\n%s", got.Labels, diff)
	}
	if got, err := place.Keys(t.Context(), want.Issuer()); err != nil || !slices.Equal(got, want.KeyIDs()) {
		t.Errorf("keys %v, %v, want %v", got, err, want.KeyIDs())
	}
	missing := publication.ConfigMap{Client: client.CoreV1(), Namespace: "ns", Name: "missing"}
	if _, err := missing.Publish(t.Context(), want); err == nil {
		t.Error("published in a ConfigMap that does not exist")
	}
}

// A place where nothing is stands for nothing, and one that cannot be read is an error.
func TestStandingOfAnEmptyPlace(t *testing.T) {
	client := fake.NewClientset()
	config := publication.ConfigMap{Client: client.CoreV1(), Namespace: "ns", Name: "missing"}
	for _, place := range []publication.Place{config, publication.Directory(filepath.Join(t.TempDir(), "missing"))} {
		if got, err := place.Standing(t.Context(), "https://issuer.example"); err != nil || !got.Empty {
			t.Errorf("%s: %+v, %v", place, got, err)
		}
	}
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	if got, err := config.Standing(t.Context(), "https://issuer.example"); err == nil {
		t.Errorf("unread: %+v", got)
	}
}

// place fails a given number of times, and reports a given number of changes by others.
type place struct {
	mu       sync.Mutex
	failures int
	stale    bool
	asked    chan struct{}
}

func (*place) String() string { return "the place" }

func (*place) Keys(context.Context, identity.Issuer) ([]identity.KeyID, error) { return nil, nil }

func (*place) Standing(context.Context, identity.Issuer) (publication.Standing, error) {
	return publication.Standing{}, nil
}

func (p *place) Publish(context.Context, publication.Issue) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.asked <- struct{}{} }()
	if p.failures > 0 {
		p.failures--
		return false, errors.New("not now")
	}
	changed := p.stale
	p.stale = false
	return changed, nil
}

func (p *place) overwrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = true
}

func TestPublisher(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	p := &place{failures: 2, stale: true, asked: make(chan struct{})}
	var log bytes.Buffer
	issue := publication.Issue{Documents: documents(t)}
	publisher := publication.NewPublisher([]publication.Place{p}, func(context.Context) (publication.Issue, error) { return issue, nil },
		clock, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); publisher.Run(ctx) }()
	step := func(d time.Duration) {
		t.Helper()
		testkit.Eventually(t, "the publisher waits for the clock", clock.HasWaiters)
		clock.Step(d)
	}
	<-p.asked
	if publisher.Check(nil) == nil {
		t.Error("ready before anything was published")
	}
	step(500 * time.Millisecond)
	<-p.asked
	step(time.Second)
	<-p.asked
	p.overwrite()
	step(time.Minute)
	<-p.asked
	testkit.Expect(t, publisher.Check(nil), "not ready after publication")
	step(time.Minute)
	<-p.asked
	// A caller with a change need not wait for the minute.
	publisher.Nudge()
	<-p.asked
	cancel()
	<-done
	if got := strings.Count(log.String(), "changed by another writer"); got != 1 {
		t.Errorf("warned %d times of one overwriting:\n%s", got, log.String())
	}
}
