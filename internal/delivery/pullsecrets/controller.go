package pullsecrets

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/workers"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Needs are what a Controller works with.
type Needs struct {
	Client client.Client // reads from the cache
	// Registries reads the configuration.
	Registries func() (registry.Config, error)
	Reviews    authority.Reviewer
	Window     renewal.Window
	Clock      clock.PassiveClock
	Random     func() float64
	Events     record.EventRecorder
	Recorder   *Recorder
	Log        *slog.Logger
}

// Controller keeps the passwords of Secrets fresh.
type Controller struct{ Needs }

const (
	// longestSleep bounds how long a Secret is not looked at: timers stand still while a machine is suspended.
	longestSleep = 10 * time.Minute
	// longestExchange bounds how long the registries of one Secret may take: less than a worker is left to a Secret, so that the failure is noted.
	longestExchange = workers.LongestLook * 3 / 4
	// afterConflict is when a Secret is looked at again that has changed meanwhile: the change queues it, too.
	afterConflict = time.Second
)

// Reconcile looks at one Secret. It never returns an error of a registry: waits are its own.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	err := c.Client.Get(ctx, request.NamespacedName, &secret)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || !wanted(&secret) {
		c.Recorder.ledger.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(longestSleep, c.look(ctx, &secret))}, nil
}

// wanted reports whether passwords are to be kept in a Secret.
func wanted(secret *corev1.Secret) bool {
	_, listed := secret.Annotations[v1alpha1.AnnotationRegistries]
	return listed && secret.Type == corev1.SecretTypeDockerConfigJson && tokensecret.Labelled(secret) && secret.DeletionTimestamp == nil
}

// look makes new passwords if they are due, and returns after how long the Secret is looked at again; 0: when it changes.
func (c *Controller) look(ctx context.Context, secret *corev1.Secret) time.Duration {
	key, now := client.ObjectKeyFromObject(secret), c.Clock.Now()
	s := read(secret)
	e := c.Recorder.ledger.Change(key, func(e *entry) { e.token = s.token.Expires })
	if s.token.Value.IsZero() || !s.token.Expires.After(now) {
		return 0 // the agent's Events have the reason
	}
	if s.sealed(secret.Data[corev1.DockerConfigJsonKey]) == secret.Annotations[v1alpha1.AnnotationRegistriesInputs] && now.Before(s.renewAt) {
		c.Recorder.ledger.Change(key, func(e *entry) { e.Record = failures.Record{} })
		return s.renewAt.Sub(now)
	}
	if wait := max(e.Wait(s.attempt, now), e.writes.Hold(now, c.Random)); wait > 0 {
		return wait
	}
	fresh, failure := c.exchange(ctx, secret, s)
	if failure.Cause == "" {
		renewAt, err := c.write(ctx, secret, s, fresh)
		switch {
		case err == nil:
			return renewAt.Sub(now)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return afterConflict
		}
		failure = failures.Failure{Cause: failures.WriteFailed, Reason: "WriteFailed", Message: fmt.Sprintf("write the passwords of registries: %v", err)}
	}
	return c.failed(secret, s, failure)
}

// exchange makes the passwords for a Secret, if the user on whose behalf it is filled may still use the identity.
func (c *Controller) exchange(ctx context.Context, secret *corev1.Secret, s state) (registry.DockerConfig, failures.Failure) {
	request, err := tokensecret.Parse(secret)
	if err == nil {
		err = tokensecret.CheckRegistries(secret)
	}
	if err != nil {
		return registry.DockerConfig{}, failures.Failure{Cause: failures.AnnotationInvalid, Reason: "InvalidAnnotation", Message: fmt.Sprintf("Secret %q: %v", secret.Name, err)}
	}
	denied, err := workload.Denied(ctx, c.Reviews, secret, request)
	if err != nil {
		return registry.DockerConfig{}, failures.Failure{Cause: failures.ReviewFailed, Reason: "ReviewFailed", Message: err.Error()}
	}
	if denied != "" {
		return registry.DockerConfig{}, failures.Failure{Cause: failures.UseDenied, Reason: "UseDenied", Message: denied}
	}
	registries, err := c.Registries()
	if err != nil {
		return registry.DockerConfig{}, failures.Failure{Cause: registriesInvalid, Reason: "RegistriesInvalid", Message: fmt.Sprintf("the configuration of credence-registry cannot be used, which an admin of the cluster corrects: %v", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, longestExchange)
	defer cancel()
	fresh, err := registries.DockerConfig(ctx, secret.Annotations[v1alpha1.AnnotationRegistries], s.token, c.Clock.Now)
	switch {
	case registry.Unknown(err):
		return registry.DockerConfig{}, failures.Failure{Cause: registryUnknown, Reason: "RegistryUnknown", Message: err.Error()}
	case err != nil:
		return registry.DockerConfig{}, failures.Failure{Cause: registryRefused, Reason: "RegistryRefused", Message: err.Error()}
	}
	return fresh, failures.Failure{}
}

// write puts the passwords into the Secret, unless it has changed meanwhile, and returns when they are due.
func (c *Controller) write(ctx context.Context, secret *corev1.Secret, s state, fresh registry.DockerConfig) (time.Time, error) {
	now := c.Clock.Now()
	// A token that is renewed brings new passwords: those that live as long are not renewed before.
	renewAt := s.token.Expires
	if fresh.Expires.Before(renewAt) {
		renewAt = c.Window.Draw(now, fresh.Expires, c.Random)
	}
	out := secret.DeepCopy()
	out.Data[corev1.DockerConfigJsonKey] = fresh.Content
	out.Annotations[v1alpha1.AnnotationRegistriesInputs] = s.sealed(fresh.Content)
	out.Annotations[v1alpha1.AnnotationRegistriesRenewTimestamp] = renewAt.UTC().Format(time.RFC3339)
	if err := c.Client.Patch(ctx, out, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return time.Time{}, err
	}
	c.Recorder.writes.Inc()
	key := client.ObjectKeyFromObject(secret)
	c.Recorder.ledger.Change(key, func(e *entry) {
		*e = entry{token: s.token.Expires, passwords: fresh.Expires, writes: e.writes.After(now)}
	})
	c.Log.InfoContext(ctx, "passwords of registries written", "secret", key.String(), "registries", secret.Annotations[v1alpha1.AnnotationRegistries], "expires", fresh.Expires, "renewAt", renewAt)
	return renewAt, nil
}

// failed counts a failure, and writes an Event: when it is another than before, and again from time to time.
func (c *Controller) failed(secret *corev1.Secret, s state, f failures.Failure) time.Duration {
	key, now := client.ObjectKeyFromObject(secret), c.Clock.Now()
	c.Recorder.failures.WithLabelValues(string(f.Cause)).Inc()
	first, wait := false, time.Duration(0)
	c.Recorder.ledger.Change(key, func(e *entry) {
		first, wait = e.Report(f, now), e.Failed(s.attempt, now, 0, c.Random)
	})
	if first {
		c.Log.Warn("a Secret gets no passwords of registries", "secret", key.String(), "cause", f.Cause, "message", f.Message)
		c.Events.Event(secret, corev1.EventTypeWarning, f.Reason, f.Message)
	}
	return wait
}
