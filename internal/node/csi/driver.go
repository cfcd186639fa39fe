package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/target"
)

// Name is the driver's, in volumes of pods and in its CSIDriver object.
const Name = v1alpha1.CSIDriver

const (
	// lookInterval is how often tokens are looked at between the kubelet's publications: tokens live ten minutes at least.
	lookInterval = 5 * time.Second
	// renewedAtOnce bounds the requests at one time.
	renewedAtOnce = 8
	// mostOfPod bounds the volumes of one pod: their memory is charged to this process, and an author may list any number of them.
	mostOfPod = 16
)

// Tokens requests a token of an identity with the service-account token of a pod. Its errors are those of the API.
type Tokens interface {
	Token(ctx context.Context, name types.NamespacedName, pod identity.Token) (v1alpha1.TokenRequestStatus, error)
}

// Config is what a Driver needs.
type Config struct {
	Node     string // the name of this node
	Tokens   Tokens
	Audience string // of the pods' tokens that it sends; empty: that of the API server
	Memory   volumes.Memory
	Adapters func(targetType string) target.Adapter
	// Registries reads the registries of which volumes may have passwords; nil: volumes of this node have no passwords.
	Registries func() (registry.Config, error)
	Window     renewal.Window
	Clock      clock.WithTicker
	Random     func() float64
	Recorder   *Recorder // nil: nothing is recorded
	Log        *slog.Logger
}

// Driver serves the volumes of one node.
type Driver struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedNodeServer
	Config

	mu      sync.Mutex
	volumes map[string]*volume // by the path that the kubelet wants each at
	// ahead is how far the issuer's clock is ahead of this node's, where that is more than tolerated; nanoseconds.
	ahead atomic.Int64
	// registered is true once the kubelet has taken the driver.
	registered atomic.Bool
}

// New returns a Driver.
func New(config Config) *Driver {
	d := &Driver{Config: config, volumes: map[string]*volume{}}
	if d.Recorder != nil {
		d.Recorder.known = d.known
	}
	return d
}

// Ready returns nil once the kubelet has registered the driver, and until then the reason.
func (d *Driver) Ready() error {
	if !d.registered.Load() {
		return errors.New("the kubelet has not registered the driver yet")
	}
	return nil
}

// known counts the volumes with tokens, and returns when the first of these expires.
func (d *Driver) known() (count int, soonest time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.volumes {
		expires := v.expires.Load()
		if expires == nil {
			continue
		}
		if count++; count == 1 || expires.Before(soonest) {
			soonest = *expires
		}
	}
	return count, soonest
}

// now is the time by the issuer's clock.
func (d *Driver) now() time.Time { return d.Clock.Now().Add(time.Duration(d.ahead.Load())) }

// take returns the volume of a path, locked. The pod is unknown where a volume is taken away.
func (d *Driver) take(path string, pod types.UID) *volume {
	for {
		d.mu.Lock()
		v := d.volumes[path]
		if v == nil {
			v = &volume{}
			d.volumes[path] = v
		}
		if pod != "" {
			v.owner = pod
		}
		d.mu.Unlock()
		v.mu.Lock()
		if !v.gone {
			return v
		}
		v.mu.Unlock()
	}
}

// forget drops a volume, which the caller has locked.
func (d *Driver) forget(path string, v *volume) {
	v.gone = true
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.volumes, path)
}

// volumesOf counts the volumes of a pod, with those that are being made.
func (d *Driver) volumesOf(pod types.UID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	count := 0
	for _, v := range d.volumes {
		if v.owner == pod {
			count++
		}
	}
	return count
}

// Run renews tokens until ctx is done, with the tokens of pods that the kubelet's last publications brought.
func (d *Driver) Run(ctx context.Context) error {
	ticker := d.Clock.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			d.look(ctx)
		}
	}
}

func (d *Driver) look(ctx context.Context) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.volumes))
	d.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(renewedAtOnce)
	for _, v := range all {
		group.Go(func() error {
			// One that is being published is looked at by that.
			if !v.mu.TryLock() {
				return nil
			}
			defer v.mu.Unlock()
			if !v.gone && v.token != nil {
				_ = d.keep(ctx, v, false)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// keep renews the token of a volume if it is due, with the pod's token of this publication or of the last one. The error is why it has no new one.
func (d *Driver) keep(ctx context.Context, v *volume, published bool) error {
	now := d.now()
	if !v.due(now) {
		return nil
	}
	if v.failure != nil && d.Clock.Now().Before(v.retryAt) {
		return v.failure
	}
	cause, asked := renewedToken, d.Clock.Now()
	if !v.mounted {
		cause = firstToken
	}
	fresh, err := d.renew(ctx, v, published)
	if err != nil {
		d.Recorder.failed(err)
		v.failures++
		v.failure, v.retryAt = err, d.Clock.Now().Add(renewal.Backoff(v.failures, d.Random))
		d.Log.WarnContext(ctx, "no new token", "identity", v.identity.String(), "pod", v.pod.String(), "reason", err, "again", v.retryAt)
		return err
	}
	v.hold(fresh, d.Window)
	if d.Recorder.wrote(cause); cause == firstToken {
		d.Recorder.mounted(d.Clock.Since(asked))
	}
	d.Log.InfoContext(ctx, "token written", "identity", v.identity.String(), "pod", v.pod.String(), "jti", fresh.id, "expires", fresh.Expiry, "renewAt", v.renewAt)
	return nil
}

// renew requests a token, and writes it with the files beside it. Of a token of the pod that the kubelet brings the API decides whether it is valid: the
// clock of this node may be wrong.
func (d *Driver) renew(ctx context.Context, v *volume, published bool) (held, error) {
	if !published && !d.now().Before(v.podTokenExpiry) {
		return held{}, unanswered(fmt.Errorf("the service-account token of the pod has expired at %s, and the kubelet of this node has brought no newer one since: an admin of the node looks whether it runs", v.podTokenExpiry.UTC().Format(time.RFC3339)))
	}
	answer, err := d.Tokens.Token(ctx, v.identity, v.podToken)
	if err != nil {
		return held{}, refused(v.request, err, d.Clock.Now())
	}
	fresh, err := inspect([]byte(answer.Token))
	if err != nil {
		return held{}, unanswered(fmt.Errorf("the answer to the request for a token can't be used: %w", err))
	}
	d.learn(fresh.IssuedAt)
	files, err := filesOf(v.request, answer, d.Adapters)
	if err != nil {
		return held{}, err
	}
	if v.registries != "" {
		passwords, err := d.passwords(ctx, v.request, answer)
		if err != nil {
			return held{}, err
		}
		files[registry.DockerConfigFile], fresh.ends = passwords.Content, later(passwords.Expires, fresh.IssuedAt.Add(shortestPassword))
	}
	if err := d.write(v, files); err != nil {
		return held{}, unwritten(err)
	}
	return fresh, nil
}

// write writes the files of a volume. That of a pod that starts is made, and removed again if its files can't be written.
func (d *Driver) write(v *volume, files map[string][]byte) error {
	if v.mounted {
		return volumes.Write(d.Memory, v.path, files, v.group)
	}
	if err := volumes.Make(d.Memory, v.path); err != nil {
		return err
	}
	if err := volumes.Write(d.Memory, v.path, files, v.group); err != nil {
		return errors.Join(err, volumes.Remove(d.Memory, v.path))
	}
	v.mounted = true
	return nil
}

// learn takes over the issuer's clock where it is far from this node's: by that, every token could look expired, or from the future.
func (d *Driver) learn(issuedAt time.Time) {
	ahead := renewal.Ahead(issuedAt, d.Clock.Now())
	if before := time.Duration(d.ahead.Swap(int64(ahead))); (ahead == 0) != (before == 0) {
		d.Log.Warn("the clocks of this node and of the issuer differ; tokens are renewed by the issuer's", "ahead", ahead.String())
	}
}
