package node_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/node/csi"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

const (
	tokenLifetime = time.Hour
	// published is how often each volume is published again.
	published = 2 * time.Minute
	ofNode    = 500
)

// countingAPI issues tokens, and counts requests: those for tokens, and all others.
type countingAPI struct {
	clock          *testingclock.FakeClock
	tokens, others atomic.Int64
}

func (a *countingAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/selftoken") {
		a.others.Add(1)
		http.NotFound(w, r)
		return
	}
	now, id := a.clock.Now(), a.tokens.Add(1)
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":"https://issuer.example","sub":"s","aud":["a"],"iat":%d,"exp":%d,"jti":"%d"}`, now.Unix(), now.Add(tokenLifetime).Unix(), id)
	answer := v1alpha1.TokenRequest{Status: v1alpha1.TokenRequestStatus{
		Token:               encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature")),
		ExpirationTimestamp: metav1.NewTime(now.Add(tokenLifetime)),
	}}
	answer.APIVersion, answer.Kind = v1alpha1.SchemeGroupVersion.String(), "TokenRequest"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer)
}

// folders are in place of memory, which only root mounts.
type folders struct{ mounted sync.Map }

func (f *folders) Mounted(path string) (bool, error) {
	_, mounted := f.mounted.Load(path)
	return mounted, nil
}

func (f *folders) Mount(path string) error {
	f.mounted.Store(path, true)
	return nil
}

func (f *folders) Unmount(path string) error {
	f.mounted.Delete(path)
	return os.RemoveAll(path)
}

// runVolumes has drivers keep the tokens of pods over lifetimes, on a clock that steps. The kubelets publish each volume again and again.
func runVolumes(t testing.TB, pods, lifetimes int) *countingAPI {
	api := &countingAPI{clock: testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	server := httptest.NewServer(api)
	defer server.Close()
	window := testkit.Need(renewal.Window{}.Complete())(t)
	folder := t.TempDir()
	var drivers []*csi.Driver
	for node := 0; node*ofNode < pods; node++ {
		drivers = append(drivers, csi.New(csi.Config{
			Node: fmt.Sprint("node-", node), Tokens: workloadidentities.NewSelfTokens(&rest.Config{Host: server.URL}), Memory: &folders{}, Adapters: targets.For, Window: window,
			Clock: api.clock, Random: rand.New(rand.NewPCG(5, uint64(node))).Float64, Log: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})),
		}))
	}
	for range time.Duration(lifetimes) * tokenLifetime / published {
		var kubelets errgroup.Group
		for node, driver := range drivers {
			kubelets.Go(func() error {
				for i := node * ofNode; i < min((node+1)*ofNode, pods); i++ {
					if _, err := driver.NodePublishVolume(t.Context(), volumeOf(folder, i, api.clock.Now())); err != nil {
						return err
					}
				}
				return nil
			})
		}
		testkit.Must(t, kubelets.Wait())
		api.clock.Step(published)
	}
	return api
}

func volumeOf(folder string, i int, now time.Time) *spec.NodePublishVolumeRequest {
	const ofKubelet = "csi.storage.k8s.io/"
	name := fmt.Sprint("pod-", i)
	return &spec.NodePublishVolumeRequest{
		VolumeId: "csi-" + name, TargetPath: filepath.Join(folder, name), Readonly: true,
		VolumeCapability: &spec.VolumeCapability{
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		VolumeContext: map[string]string{
			v1alpha1.VolumeAttributeIdentity: "banana", ofKubelet + "ephemeral": "true", ofKubelet + "serviceAccount.name": "web",
			ofKubelet + "pod.name": name, ofKubelet + "pod.namespace": "fruit", ofKubelet + "pod.uid": name,
		},
		Secrets: map[string]string{ofKubelet + "serviceAccount.tokens": fmt.Sprintf(`{"":{"token":"of-the-pod","expirationTimestamp":%q}}`, now.Add(time.Hour).UTC().Format(time.RFC3339))},
	}
}

// Volumes have a token for each window of a lifetime, and nothing else is requested.
func TestVolumesWriteNothing(t *testing.T) {
	const pods, lifetimes = 20, 4
	api := runVolumes(t, pods, lifetimes)
	// Tokens are renewed 0.6 to 0.8 of a lifetime after they were issued: over four lifetimes, five or six times.
	if tokens := api.tokens.Load(); tokens < 5*pods || tokens > 7*pods || api.others.Load() != 0 {
		t.Errorf("%d requests for tokens of %d pods, and %d others", tokens, pods, api.others.Load())
	}
}

func BenchmarkVolumesSteady(b *testing.B) {
	const pods, lifetimes = 10000, 4
	for b.Loop() {
		api := runVolumes(b, pods, lifetimes)
		b.ReportMetric(float64(api.tokens.Load()), "tokens")
		b.ReportMetric(float64(api.others.Load()), "writes")
	}
}
