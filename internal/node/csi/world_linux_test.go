package csi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/node/csi"
	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is an API that issues tokens, a node, and its driver.
type world struct {
	t      *testing.T
	clock  *testingclock.FakeClock
	driver *csi.Driver
	meters *prometheus.Registry
	log    bytes.Buffer
	target string

	podTokens      int
	podTokenExpiry time.Time

	mu       sync.Mutex
	requests []string      // "namespace/name with the pod's token"
	refusal  error         // of the API
	ahead    time.Duration // of the issuer's clock
	system   *v1alpha1.TargetSystem
	settings string            // the configuration of registries; empty: the node has none
	atStep   func(step string) // is called before each step
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	w := &world{t: t, clock: testingclock.NewFakeClock(began), target: filepath.Join(t.TempDir(), "mount"), atStep: func(string) {}}
	w.system = &v1alpha1.TargetSystem{Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/banana"}`)}}
	w.start()
	t.Cleanup(func() {
		testkit.Expect(t, volumes.Remove(volumes.Tmpfs{}, w.target))
		if strings.Contains(w.log.String(), "eyJ") {
			t.Errorf("a token is in the log: %s", w.log.String())
		}
	})
	return w
}

// start starts a driver that knows nothing of the one before.
func (w *world) start() {
	recorder := csi.NewRecorder(w.clock)
	var registries func() (registry.Config, error)
	if w.settings != "" {
		registries = func() (registry.Config, error) { return registry.Parse([]byte(w.settings)) }
	}
	w.meters = prometheus.NewPedanticRegistry()
	w.meters.MustRegister(recorder)
	w.driver = csi.New(csi.Config{
		Node: "node-1", Tokens: w, Memory: stepped{w}, Adapters: targets.For, Registries: registries, Window: window(w.t),
		Clock: w.clock, Random: func() float64 { return 0.5 }, Recorder: recorder, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

// Token implements csi.Tokens: tokens live an hour.
func (w *world) Token(_ context.Context, name types.NamespacedName, pod identity.Token) (v1alpha1.TokenRequestStatus, error) {
	w.atStep("request")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, name.String()+" with "+pod.Reveal())
	if w.refusal != nil {
		return v1alpha1.TokenRequestStatus{}, w.refusal
	}
	issued := w.clock.Now().Add(w.ahead)
	claims := fmt.Sprintf(`{"iss":"https://issuer.example","sub":"gardener.cloud:workloadidentity:%s:%s:u1","aud":["fruit"],"iat":%d,"exp":%d,"jti":"token-%d"}`,
		name.Namespace, name.Name, issued.Unix(), issued.Add(time.Hour).Unix(), len(w.requests))
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"RS256","kid":"k1"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
	return v1alpha1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(issued.Add(time.Hour)), TargetSystem: w.system}, nil
}

func (w *world) requested() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// stepped is memory whose steps are seen.
type stepped struct{ *world }

func (s stepped) Mounted(path string) (bool, error) {
	s.atStep("look")
	return volumes.Tmpfs{}.Mounted(path)
}

func (s stepped) Mount(path string) error {
	s.atStep("mount")
	return volumes.Tmpfs{}.Mount(path)
}

func (s stepped) Unmount(path string) error {
	s.atStep("unmount")
	return volumes.Tmpfs{}.Unmount(path)
}

// call is the kubelet's, with a token of the pod that is valid for an hour; the kubelet has a new one before that is over.
func (w *world) call() *spec.NodePublishVolumeRequest {
	if !w.clock.Now().Before(w.podTokenExpiry.Add(-10 * time.Minute)) {
		w.podTokens++
		w.podTokenExpiry = w.clock.Now().Add(time.Hour)
	}
	tokens, err := json.Marshal(map[string]any{"": map[string]any{"token": fmt.Sprint("pod-token-", w.podTokens), "expirationTimestamp": w.podTokenExpiry}})
	if err != nil {
		w.t.Fatal(err)
	}
	return &spec.NodePublishVolumeRequest{
		VolumeId: "csi-1", TargetPath: w.target, Readonly: true,
		VolumeCapability: &spec.VolumeCapability{
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		VolumeContext: map[string]string{
			"workloadIdentity":                       "banana",
			"csi.storage.k8s.io/pod.name":            "web-1",
			"csi.storage.k8s.io/pod.namespace":       "fruit",
			"csi.storage.k8s.io/pod.uid":             "5f1c",
			"csi.storage.k8s.io/serviceAccount.name": "web",
			"csi.storage.k8s.io/ephemeral":           "true",
		},
		Secrets: map[string]string{"csi.storage.k8s.io/serviceAccount.tokens": string(tokens)},
	}
}

func (w *world) publish() error {
	_, err := w.driver.NodePublishVolume(w.t.Context(), w.call())
	return err
}

func (w *world) unpublish() error { return w.unpublishAt(w.target) }

func (w *world) unpublishAt(path string) error {
	_, err := w.driver.NodeUnpublishVolume(w.t.Context(), &spec.NodeUnpublishVolumeRequest{VolumeId: "csi-1", TargetPath: path})
	return err
}

func (w *world) mustPublish() {
	w.t.Helper()
	if err := w.publish(); err != nil {
		w.t.Fatal(err)
	}
}

// file is a file of the volume; empty if it does not exist.
func (w *world) file(name string) string {
	content, err := volumes.Read(w.target, name)
	if err != nil {
		return ""
	}
	return string(content)
}

// tokenID is the jti claim of the token that the pod reads.
func (w *world) tokenID() string {
	parts := strings.Split(w.file("token"), ".")
	if len(parts) != 3 {
		return ""
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		w.t.Fatal(err)
	}
	var id struct {
		JTI string `json:"jti"`
	}
	if err := json.Unmarshal(claims, &id); err != nil {
		w.t.Fatal(err)
	}
	return id.JTI
}

// leavesNothing checks that nothing of a volume is left.
func (w *world) leavesNothing(when string) {
	w.t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(w.target)); err != nil || len(entries) > 0 {
		w.t.Errorf("%s there is %v, %v", when, entries, err)
	}
}

var identities = schema.GroupResource{Group: "authentication.gardener.cloud", Resource: "workloadidentities"}

func absent() error { return errors.NewNotFound(identities, "banana") }
