package csi_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/node/csi"
	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/test/testkit"
)

func window(t *testing.T) renewal.Window {
	t.Helper()
	complete := testkit.Need(renewal.Window{}.Complete())(t)
	return complete
}

// A pod has the files that a Secret would have, for its own place; they stay until the token is due, and go with the pod.
func TestPublish(t *testing.T) {
	w := newWorld(t)
	call := w.call()
	call.VolumeContext["mountPath"] = "/identities/banana/"
	call.VolumeCapability.GetMount().VolumeMountGroup = "4711"
	testkit.Must(t, testkit.Err(w.driver.NodePublishVolume(t.Context(), call)))
	if got := w.requests; len(got) != 1 || got[0] != "fruit/banana with pod-token-1" {
		t.Errorf("requests %q", got)
	}
	for name, want := range map[string]string{
		"config":          "apiVersion: aws.authentication.gardener.cloud/v1alpha1\niamRoleARN: arn:aws:iam::112233445566:role/banana\nkind: Config\n",
		"credentialsFile": "[default]\nrole_arn=arn:aws:iam::112233445566:role/banana\nweb_identity_token_file=/identities/banana/token\n",
	} {
		if got := w.file(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(w.target, "token"))
	if err != nil || info.Mode() != 0o440 || info.Sys().(*syscall.Stat_t).Gid != 4711 {
		t.Errorf("the token is %v, %v", info, err)
	}
	w.clock.Step(30 * time.Minute)
	w.mustPublish()
	if w.requested() != 1 || w.tokenID() != "token-1" {
		t.Errorf("after half of its life the token is %s of %d", w.tokenID(), w.requested())
	}
	w.clock.Step(19 * time.Minute)
	w.mustPublish()
	if w.requested() != 2 || w.tokenID() != "token-2" {
		t.Errorf("after four fifths of its life the token is %s of %d", w.tokenID(), w.requested())
	}
	for range 2 {
		testkit.Must(t, w.unpublish())
		w.leavesNothing("after the pod")
	}
}

// Older servers do not state the target system: the pod has its token alone. One whose configuration can't be used is refused.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	w.system = nil
	w.mustPublish()
	if w.file("token") == "" || w.file("config") != "" || w.file("credentialsFile") != "" {
		t.Error("without a target system, the volume has more than a token")
	}
	testkit.Must(t, w.unpublish())
	w.system = &v1alpha1.TargetSystem{Type: "aws", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"Basket"}`)}}
	if err := w.publish(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "target system aws does not take its providerConfig") {
		t.Errorf("with a configuration of another: %v", err)
	}
	w.leavesNothing("after a refusal")
}

// A driver that sends tokens of pods to the agent of its cluster sends those for the agent, and no others.
func TestAudience(t *testing.T) {
	w := newWorld(t)
	w.driver.Audience = "agent.identity.credence.dev"
	call := w.call()
	if _, err := w.driver.NodePublishVolume(t.Context(), call); err == nil || !strings.Contains(err.Error(), `the kubelet brings no token of the pod for the audience agent.identity.credence.dev: a cluster admin gives CSIDriver csi.identity.credence.dev tokenRequests: [{audience: "agent.identity.credence.dev", expirationSeconds: 600}]`) {
		t.Errorf("with a token for the API server: %v", err)
	}
	call.Secrets["csi.storage.k8s.io/serviceAccount.tokens"] = `{"":{"token":"for-the-api","expirationTimestamp":"2100-01-01T00:00:00Z"},"agent.identity.credence.dev":{"token":"for-the-agent","expirationTimestamp":"2100-01-01T00:00:00Z"}}`
	testkit.Must(t, testkit.Err(w.driver.NodePublishVolume(t.Context(), call)))
	if want := []string{"fruit/banana with for-the-agent"}; !slices.Equal(w.requests, want) {
		t.Errorf("requested %q, want %q", w.requests, want)
	}
}

func TestRefusedCalls(t *testing.T) {
	const tokens = "csi.storage.k8s.io/serviceAccount.tokens"
	for name, test := range map[string]struct {
		change func(*spec.NodePublishVolumeRequest)
		want   string
	}{
		"no id":             {func(c *spec.NodePublishVolumeRequest) { c.VolumeId = "" }, "no volume id"},
		"no path":           {func(c *spec.NodePublishVolumeRequest) { c.TargetPath = "" }, "no target path"},
		"relative path":     {func(c *spec.NodePublishVolumeRequest) { c.TargetPath = "a/b" }, "clean absolute path"},
		"path with dots":    {func(c *spec.NodePublishVolumeRequest) { c.TargetPath = "/a/../b" }, "clean absolute path"},
		"root":              {func(c *spec.NodePublishVolumeRequest) { c.TargetPath = "/" }, "clean absolute path"},
		"no capability":     {func(c *spec.NodePublishVolumeRequest) { c.VolumeCapability = nil }, "no volume capability"},
		"block":             {func(c *spec.NodePublishVolumeRequest) { c.VolumeCapability.AccessType = &spec.VolumeCapability_Block{} }, "not a block device"},
		"file system":       {func(c *spec.NodePublishVolumeRequest) { c.VolumeCapability.GetMount().FsType = "ext4" }, "leave it out"},
		"writable":          {func(c *spec.NodePublishVolumeRequest) { c.Readonly = false }, "set csi.readOnly: true"},
		"a Secret":          {func(c *spec.NodePublishVolumeRequest) { c.Secrets["password"] = "x" }, "leave nodePublishSecretRef out"},
		"unknown attribute": {func(c *spec.NodePublishVolumeRequest) { c.VolumeContext["identity"] = "x" }, `has "identity", which is not an attribute: there are workloadIdentity, mountPath, registries`},
		"no identity":       {func(c *spec.NodePublishVolumeRequest) { delete(c.VolumeContext, "workloadIdentity") }, "has no workloadIdentity"},
		"path as a name":    {func(c *spec.NodePublishVolumeRequest) { c.VolumeContext["workloadIdentity"] = "../x" }, "not a valid name"},
		"other namespace":   {func(c *spec.NodePublishVolumeRequest) { c.VolumeContext["workloadIdentity"] = "other/banana" }, "not a valid name"},
		"mount path":        {func(c *spec.NodePublishVolumeRequest) { c.VolumeContext["mountPath"] = "/a\n[default]" }, "is not an absolute path"},
		"group":             {func(c *spec.NodePublishVolumeRequest) { c.VolumeCapability.GetMount().VolumeMountGroup = "-1" }, "not a number of a group"},
		"persistent":        {func(c *spec.NodePublishVolumeRequest) { c.VolumeContext["csi.storage.k8s.io/ephemeral"] = "false" }, "the kubelet states no pod"},
		"no pod":            {func(c *spec.NodePublishVolumeRequest) { delete(c.VolumeContext, "csi.storage.k8s.io/pod.namespace") }, "the kubelet states no pod"},
		"no pod's uid":      {func(c *spec.NodePublishVolumeRequest) { delete(c.VolumeContext, "csi.storage.k8s.io/pod.uid") }, "the kubelet states no pod"},
		"no token":          {func(c *spec.NodePublishVolumeRequest) { c.Secrets = nil }, "the kubelet brings no token"},
		"another audience": {func(c *spec.NodePublishVolumeRequest) {
			c.Secrets[tokens] = `{"vault":{"token":"eyJhbGciOiJub25lIn0.e30."}}`
		}, "the kubelet brings no token"},
		"not JSON": {func(c *spec.NodePublishVolumeRequest) { c.Secrets[tokens] = `eyJhbGciOiJub25lIn0.e30.` }, "the kubelet brings no token"},
		"an author's tokens": {func(c *spec.NodePublishVolumeRequest) {
			c.VolumeContext[tokens], c.Secrets[tokens] = c.Secrets[tokens], `{}`
		}, "the kubelet brings no token"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			call := w.call()
			test.change(call)
			_, err := w.driver.NodePublishVolume(t.Context(), call)
			if code := status.Code(err); code != codes.InvalidArgument && code != codes.FailedPrecondition || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("%v, want %q", err, test.want)
			}
			if w.requested() != 0 {
				t.Error("a token was requested")
			}
			w.leavesNothing("after a refusal")
		})
	}
}

// Tokens of older kubelets are attributes.
func TestTokensInAttributes(t *testing.T) {
	w := newWorld(t)
	call := w.call()
	maps.Copy(call.VolumeContext, call.Secrets)
	call.Secrets = nil
	testkit.Expect(t, testkit.Err(w.driver.NodePublishVolume(t.Context(), call)))
}

// The message of each refusal of the API reaches the pod, and nothing is left.
func TestRefusedTokens(t *testing.T) {
	older := errors.NewGenericServerResponse(http.StatusNotFound, "POST", identities, "banana", "404 page not found", 0, true)
	for name, test := range map[string]struct {
		refusal error
		code    codes.Code
		want    string
	}{
		"may not use":    {errors.NewForbidden(identities, "banana", fmt.Errorf("service account fruit/web may not use it: a cluster admin allows it")), codes.PermissionDenied, "may not use it: a cluster admin allows it"},
		"pod is gone":    {errors.NewUnauthorized("pod not found"), codes.Unauthenticated, "does not accept the pod's service-account token, which expires at 2026-01-02T04:04:05Z: pod not found. If the service account was deleted and created again, its pods keep the old token for up to 8 minutes: delete the pod to get a new one. The clock of this node is at 2026-01-02T03:04:05Z: if that is wrong, an admin of the node sets it"},
		"no identity":    {absent(), codes.NotFound, "the identity does not exist: create it"},
		"older server":   {older, codes.FailedPrecondition, "its server is older than this node's driver, or is not registered: an admin of the identity cluster upgrades it (docs/howto/upgrade.md), or, where identities are of another cluster, gives the driver the address of the agent (docs/howto/tokens-without-secrets.md); until then the pod can mount a Secret with the token (docs/howto/deliver-into-a-secret.md)"},
		"too many":       {errors.NewTooManyRequests("slow down", 7), codes.ResourceExhausted, "takes no more requests now"},
		"no answer":      {fmt.Errorf("dial tcp 10.0.0.1:443: connect: connection refused"), codes.Unavailable, "connection refused"},
		"no signing key": {&errors.StatusError{ErrStatus: metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable, Message: "no key", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}}}}}, codes.Unavailable, "the request is repeated"},
		"invalid":        {errors.NewBadRequest("the body"), codes.FailedPrecondition, "the body"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refusal = test.refusal
			err := w.publish()
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "workload identity fruit/banana for pod fruit/web-1") {
				t.Errorf("%v, want %s %q", err, test.code, test.want)
			}
			w.leavesNothing("after a refusal")
			w.refusal = nil
			w.mustPublish()
		})
	}
}

// In an outage the token stays as long as it lives, requests become rare, and the kubelet is given a code that keeps the volume.
func TestOutage(t *testing.T) {
	w := newWorld(t)
	w.mustPublish()
	w.refusal = fmt.Errorf("dial tcp 10.0.0.1:443: connect: connection refused")
	began := w.requested()
	for range 15 {
		w.clock.Step(time.Minute)
		w.mustPublish()
	}
	w.clock.Step(34 * time.Minute)
	for range 30 {
		err := w.publish()
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the token is not renewed, and is valid until 2026-01-02T04:04:05Z: no token of workload identity fruit/banana") {
			t.Errorf("%v", err)
		}
		w.clock.Step(20 * time.Second)
	}
	if w.tokenID() != "token-1" {
		t.Errorf("the token is %q", w.tokenID())
	}
	if requests := w.requested() - began; requests < 3 || requests > 12 {
		t.Errorf("%d requests in ten minutes of an outage", requests)
	}
	w.refusal = nil
	w.clock.Step(5 * time.Minute)
	w.mustPublish()
	if id := w.tokenID(); id == "token-1" || id == "" {
		t.Errorf("after the outage the token is %q", id)
	}
}

// Between publications tokens are renewed with the pod's last token, while that is valid.
func TestRenewedByTheDriver(t *testing.T) {
	w := newWorld(t)
	w.mustPublish()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.driver.Run(ctx) }()
	w.tick(49 * time.Minute)
	// The clock stands still meanwhile: the pod's own token is valid for eleven more minutes.
	testkit.Eventually(t, "the token is renewed", func() bool { return w.tokenID() == "token-2" })
	// That of the pod was from the first publication, and is over after an hour.
	before := w.requested()
	for range 60 {
		w.tick(time.Minute)
	}
	if w.requested() != before {
		t.Errorf("%d requests with a token of the pod that has expired", w.requested()-before)
	}
	stop()
	testkit.Expect(t, <-ended)
	w.mustPublish()
	if w.tokenID() != "token-3" {
		t.Errorf("the token is %q after the kubelet's next publication", w.tokenID())
	}
}

// tick lets time pass once the driver waits for it.
func (w *world) tick(d time.Duration) {
	w.t.Helper()
	testkit.Eventually(w.t, "the driver runs", w.clock.HasWaiters)
	w.clock.Step(d)
}

// A driver that was started anew finds its volumes when they are published again, with the same schedule.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.mustPublish()
	w.clock.Step(20 * time.Minute)
	for range 3 {
		w.start()
		w.mustPublish()
	}
	if w.requested() != 1 {
		t.Errorf("%d tokens were requested", w.requested())
	}
	w.clock.Step(29 * time.Minute)
	w.start()
	w.mustPublish()
	if w.tokenID() != "token-2" {
		t.Errorf("the token is %q", w.tokenID())
	}
	w.start()
	testkit.Must(t, w.unpublish())
	w.leavesNothing("after the pod")
}

// killed is the end of a driver before a step.
type killed struct{}

// A driver that is killed before any step of a call leaves a volume that the next one puts right, or removes.
func TestKilledDriver(t *testing.T) {
	calls := map[string]func(*world) error{
		"publish": (*world).publish,
		"republish": func(w *world) error {
			w.clock.Step(50 * time.Minute)
			return w.publish()
		},
		"unpublish": (*world).unpublish,
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for n := 1; ; n++ {
				w := newWorld(t)
				if name != "publish" {
					w.mustPublish()
				}
				if !w.killedAt(n, call) {
					break
				}
				kills++
				w.start()
				if name == "unpublish" {
					if err := w.unpublish(); err != nil {
						t.Errorf("after a kill before step %d: %v", n, err)
					}
				} else {
					w.mustPublish()
					if w.file("token") == "" {
						t.Errorf("after a kill before step %d there is no token", n)
					}
				}
				testkit.Expect(t, w.unpublish())
				w.leavesNothing(fmt.Sprintf("after a kill before step %d", n))
			}
			if kills < 2 {
				t.Errorf("%d kills", kills)
			}
		})
	}
}

// killedAt makes a call, and reports whether it had an nth step, before which the driver was killed.
func (w *world) killedAt(n int, call func(*world) error) (was bool) {
	step := 0
	w.atStep = func(string) {
		if step++; step == n {
			panic(killed{})
		}
	}
	defer func() {
		w.atStep = func(string) {}
		if cause := recover(); cause != nil {
			if _, was = cause.(killed); !was {
				panic(cause)
			}
		}
	}()
	if err := call(w); err != nil {
		w.t.Error(err)
	}
	return false
}

// A node whose clock is wrong renews by the issuer's, and requests no more tokens for it.
func TestWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		w := newWorld(t)
		w.ahead = ahead
		w.mustPublish()
		for range 30 {
			w.clock.Step(time.Minute)
			w.mustPublish()
		}
		if w.requested() != 1 {
			t.Errorf("the issuer is %s ahead: %d requests", ahead, w.requested())
		}
		if !strings.Contains(w.log.String(), "the clocks of this node and of the issuer differ") {
			t.Error("the log does not have it")
		}
		testkit.Expect(t, w.unpublish())
	}
}

// A pod starts on a node whose clock is ahead, though its own token looks expired there: the kubelet has just been given it. Between publications the
// token counts for as long as it is valid by the issuer's clock.
func TestPodTokensByAWrongClock(t *testing.T) {
	w := newWorld(t)
	w.ahead = -3 * time.Hour
	call := w.call()
	call.Secrets["csi.storage.k8s.io/serviceAccount.tokens"] = fmt.Sprintf(`{"":{"token":"pod-token","expirationTimestamp":%q}}`, began.Add(-2*time.Hour).Format(time.RFC3339))
	testkit.Must(t, testkit.Err(w.driver.NodePublishVolume(t.Context(), call)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.driver.Run(ctx) }()
	w.tick(49 * time.Minute)
	testkit.Eventually(t, "the token is renewed", func() bool { return w.tokenID() == "token-2" })
	stop()
	testkit.Expect(t, <-ended)
}

// A volume that is full keeps its token, and the message has the reason.
func TestFullVolume(t *testing.T) {
	w := newWorld(t)
	w.mustPublish()
	if err := os.WriteFile(filepath.Join(w.target, "filler"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the volume takes a megabyte")
	}
	w.clock.Step(50 * time.Minute)
	err := w.publish()
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the volume is full, and keeps the files that it has") {
		t.Errorf("%v", err)
	}
	if w.tokenID() != "token-1" {
		t.Errorf("the token is %q", w.tokenID())
	}
}

// A volume that is full from the start is taken away again with what it has of the files, and made anew once there is room.
func TestFullFromTheStart(t *testing.T) {
	w := newWorld(t)
	made := false
	w.atStep = func(step string) {
		if step == "look" && made {
			_ = os.WriteFile(filepath.Join(w.target, "filler"), make([]byte, 1<<20), 0o600) // fails, as it takes all there is
		}
		made = step == "mount"
	}
	if err := w.publish(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "the volume is full") {
		t.Errorf("%v", err)
	}
	w.leavesNothing("after a publication without room")
	w.atStep = func(string) {}
	w.mustPublish()
	if w.tokenID() == "" {
		t.Error("there is no token once there is room")
	}
}

// Calls for one volume that come at once, as after a restart of the kubelet, are made one after the other.
func TestAtOnce(t *testing.T) {
	w := newWorld(t)
	call := w.call()
	publish := func() error {
		_, err := w.driver.NodePublishVolume(t.Context(), call)
		return err
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			testkit.Expect(t, publish())
		})
	}
	calls.Wait()
	if w.requested() != 1 {
		t.Errorf("%d tokens were requested", w.requested())
	}
	for n := range 40 {
		calls.Go(func() {
			if n%2 == 0 {
				_ = publish()
			} else if err := w.unpublish(); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	testkit.Expect(t, w.unpublish())
	w.leavesNothing("at the end")
}

// A pod has a bounded number of volumes, also where the kubelet wants them at once. Those that it has stay, also after a restart, and those
// of other pods are not counted.
func TestVolumesOfOnePod(t *testing.T) {
	const most = 16
	w := newWorld(t)
	base := w.target
	publish := func(n int, pod string) error {
		w.target = fmt.Sprintf("%s-%d", base, n)
		path := w.target
		t.Cleanup(func() {
			testkit.Expect(t, volumes.Remove(volumes.Tmpfs{}, path))
		})
		call := w.call()
		call.VolumeContext["csi.storage.k8s.io/pod.uid"] = pod
		_, err := w.driver.NodePublishVolume(t.Context(), call)
		return err
	}
	for n := range most {
		if err := publish(n, "5f1c"); err != nil {
			t.Fatalf("volume %d: %v", n+1, err)
		}
	}
	for range 2 {
		err := publish(most, "5f1c")
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "fruit/banana for pod fruit/web-1: the pod has more than 16 volumes of driver csi.identity.credence.dev") {
			t.Errorf("one more: %v", err)
		}
		if _, err := os.Lstat(w.target); !os.IsNotExist(err) {
			t.Errorf("the refused volume has a folder: %v", err)
		}
	}
	if w.requested() != most {
		t.Errorf("%d tokens were requested", w.requested())
	}
	testkit.Expect(t, publish(most+1, "77aa"), "of another pod")
	w.start()
	for n := range most {
		if err := publish(n, "5f1c"); err != nil {
			t.Errorf("volume %d after a restart: %v", n+1, err)
		}
	}
	if err := publish(most, "5f1c"); err == nil {
		t.Error("one more after a restart")
	}
	testkit.Must(t, w.unpublishAt(base+"-0"))
	testkit.Expect(t, publish(most, "5f1c"), "after one was taken away")
	calls := make([]*spec.NodePublishVolumeRequest, 3*most)
	for n := range calls {
		calls[n] = w.call()
		calls[n].TargetPath = fmt.Sprintf("%s-at-once-%d", base, n)
		calls[n].VolumeContext["csi.storage.k8s.io/pod.uid"] = "99bb"
	}
	var made atomic.Int64
	var group sync.WaitGroup
	for _, call := range calls {
		t.Cleanup(func() { _ = volumes.Remove(volumes.Tmpfs{}, call.TargetPath) })
		group.Go(func() {
			if _, err := w.driver.NodePublishVolume(t.Context(), call); err == nil {
				made.Add(1)
			}
		})
	}
	group.Wait()
	if made.Load() > most {
		t.Errorf("%d volumes at once", made.Load())
	}
}

// A file in the way is left as it is, and the message names it.
func TestSomethingInTheWay(t *testing.T) {
	w := newWorld(t)
	testkit.Must(t, os.WriteFile(w.target, nil, 0o600))
	if err := w.publish(); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), w.target+" is not a folder") {
		t.Errorf("%v", err)
	}
	testkit.Expect(t, testkit.Err(os.Stat(w.target)))
	testkit.Must(t, os.Remove(w.target))
}

// The kubelet learns which driver a socket has; a driver that it refuses ends, so that another process tries again.
func TestRegistration(t *testing.T) {
	driver := csi.New(csi.Config{Node: "node-1", Log: newWorld(t).driver.Log, Memory: volumes.Tmpfs{}})
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	testkit.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- driver.Serve(t.Context(), listener) }()
	connection, err := grpc.NewClient("unix://"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	kubelet := registration.NewRegistrationClient(connection)
	info, err := kubelet.GetInfo(t.Context(), &registration.InfoRequest{})
	if err != nil || info.Type != "CSIPlugin" || info.Name != "csi.identity.credence.dev" || info.Endpoint != listener.Addr().String() || !slices.Equal(info.SupportedVersions, []string{"1.0.0"}) {
		t.Errorf("%v, %v", info, err)
	}
	if err := driver.Ready(); err == nil {
		t.Error("ready before the kubelet has registered it")
	}
	for _, state := range []*registration.RegistrationStatus{{PluginRegistered: true}, {Error: "another driver of this name"}} {
		testkit.Must(t, testkit.Err(kubelet.NotifyRegistrationStatus(t.Context(), state)))
	}
	testkit.Expect(t, driver.Ready(), "registered, and not ready")
	if err := <-served; err == nil || !strings.Contains(err.Error(), "another driver of this name") {
		t.Errorf("%v", err)
	}
}
