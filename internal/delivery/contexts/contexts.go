// Package contexts makes the Secrets that objects of the identity cluster need, and removes those that none needs any more. In go what the
// identity cluster wants delivered, the labels of namespaces and the Secrets that exist; out come Secrets that name an identity and a
// context, and whether one of them may have a token. It requests no tokens, and changes no Secret that it has not made.
package contexts

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Deliveries are what the identity cluster wants delivered in this cluster. They must not be changed.
type Deliveries interface {
	// Known reports whether all have been read once.
	Known() bool
	// Of returns those into a Secret.
	Of(secret types.NamespacedName) []*identityv1alpha1.ContextDelivery
	// Named returns the delivery of a name, or nil.
	Named(name string) *identityv1alpha1.ContextDelivery
	// Unplaced reports whether it is not known at the moment which Secrets an object needs.
	Unplaced(object types.UID) bool
	// Secrets returns the Secrets of a namespace into which something is to be delivered; of all namespaces if it is empty.
	Secrets(namespace string) []types.NamespacedName
}

// Needs are what a Controller works with.
type Needs struct {
	Client     client.Client // reads from the cache
	Live       client.Reader // reads the API
	Deliveries Deliveries
	// Serves reports whether the agent has the Secrets of a namespace.
	Serves func(namespace string) bool
	Clock  clock.PassiveClock
	Random func() float64
	Events workload.Events
	Ledger *Ledger
	Log    *slog.Logger
}

// Controller makes and removes Secrets.
type Controller struct{ Needs }

// New returns a Controller.
func New(needs Needs) *Controller { return &Controller{needs} }

// Ledger remembers what has become of deliveries, by their Secret.
type Ledger struct{ failures.Ledger[Entry] }

// Entry is the state of a delivery in memory: nothing that would be missed after a restart.
type Entry struct {
	failures.Record
	State State
	// unneeded is since when nothing is to be delivered into a Secret of ours; zero: something is.
	unneeded time.Time
	// unplaced is since when the Secret of a delivery is not known; zero: it is.
	unplaced time.Time
}

// Count returns how many Secrets are in each state.
func (l *Ledger) Count() map[State]int {
	count := map[State]int{}
	l.Each(func(e Entry) { count[e.State]++ })
	return count
}

const (
	// cacheLag is after how long a Secret is looked at again that the cache does not show as it is.
	cacheLag = time.Second
	// foreignLook is how often a name is tried again that another Secret has: the agent does not see Secrets without its label.
	foreignLook = time.Minute
	// settling is for how long a Secret stays that none needs any more: an object that is placed anew loses its deliveries for a moment.
	settling = 2 * time.Second
	// placing is for how long it is not reported that the Secret of a delivery is not known: an object that has just been made may have no place yet.
	placing = time.Minute
)

// Unplaced are the requests for those deliveries whose Secret is not known, by their names.
func (c *Controller) Unplaced() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, d := range c.Deliveries.Of(types.NamespacedName{}) {
		keys = append(keys, types.NamespacedName{Name: d.Name})
	}
	return keys
}

// Reconcile looks at one Secret, or without a namespace at a delivery whose Secret is not known.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !c.Deliveries.Known() {
		return reconcile.Result{}, nil // all are looked at once they are
	}
	if request.Namespace == "" {
		return c.place(request.NamespacedName), nil
	}
	f, err := c.look(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	a := decide(f)
	err = nil
	switch a.step {
	case forget:
		c.Ledger.Forget(f.key)
		if a.message != "" {
			c.Log.WarnContext(ctx, "a Secret that no context object needs any more may still be there", "secret", f.key.String(), "message", a.message)
			c.Events.Workload.Event(workload.Reference("v1", "Secret", f.key.Namespace, f.key.Name, ""), corev1.EventTypeWarning, reasons[Waiting], a.message)
		}
		return reconcile.Result{}, nil
	case remove:
		return c.remove(ctx, f.secret)
	case create:
		err = c.Client.Create(ctx, a.secret)
		if apierrors.IsAlreadyExists(err) {
			return c.taken(ctx, f.key, a.delivery)
		}
	case update:
		err = c.Client.Patch(ctx, a.secret, client.MergeFromWithOptions(f.secret, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return reconcile.Result{RequeueAfter: cacheLag}, nil
		}
	case report:
		if a.state == Waiting {
			return reconcile.Result{RequeueAfter: c.wait(f.key, a)}, nil
		}
		c.report(f.key, a)
		if a.state == NotOwn {
			return reconcile.Result{RequeueAfter: foreignLook}, nil
		}
		return reconcile.Result{}, nil // until something changes
	}
	if err != nil {
		a.state, a.message = NotWritten, fmt.Sprintf("Secret %s can't be written: %v", f.key, err)
		c.report(f.key, a)
		var wait time.Duration
		c.Ledger.Change(f.key, func(e *Entry) { wait = e.Failed("", c.Clock.Now(), failures.LongestWait(a.message), c.Random) })
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if a.step != nothing {
		c.Log.InfoContext(ctx, "a Secret follows its context object", "secret", f.key.String(), "delivery", a.delivery.Name, "source", sourceOf(a.delivery).String(), "created", a.step == create)
	}
	c.Ledger.Change(f.key, func(e *Entry) { *e = Entry{State: a.state} })
	return reconcile.Result{}, nil
}

// place reports a delivery whose Secret has not been known for a while.
func (c *Controller) place(key types.NamespacedName) reconcile.Result {
	d, now := c.Deliveries.Named(key.Name), c.Clock.Now()
	if d == nil || d.Spec.Secret.Name != "" {
		c.Ledger.Forget(key)
		return reconcile.Result{}
	}
	since := c.Ledger.Change(key, func(e *Entry) {
		if e.unplaced.IsZero() {
			*e = Entry{State: Problem, unplaced: now}
		}
	}).unplaced
	if wait := placing - now.Sub(since); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}
	}
	c.report(key, action{state: Problem, message: d.Spec.Problem, delivery: d})
	return reconcile.Result{}
}

// patience is how many times in a row the agent lacks the right to the Secrets of a namespace before that is reported: the binder takes a
// moment to grant it.
const patience = 4

// wait handles a Secret in a namespace whose Secrets the agent may not read yet, and returns after how long it is looked at again.
func (c *Controller) wait(key types.NamespacedName, a action) time.Duration {
	var wait time.Duration
	failures := c.Ledger.Change(key, func(e *Entry) {
		e.State = a.state
		wait = e.Failed("", c.Clock.Now(), 0, c.Random)
	}).Failures
	if failures >= patience {
		c.report(key, a)
	}
	return wait
}

// look gathers what is known of a Secret.
func (c *Controller) look(ctx context.Context, key types.NamespacedName) (facts, error) {
	state := c.Ledger.Get(key).State
	f := facts{key: key, deliveries: c.Deliveries.Of(key), served: c.Serves(key.Namespace), made: state == Delivered || state == Waiting}
	var secret corev1.Secret
	if !f.served {
		// It is not in the cache.
	} else if err := c.Client.Get(ctx, key, &secret); err == nil {
		f.secret, f.unplaced = &secret, c.Deliveries.Unplaced(ObjectOf(&secret))
	} else if !apierrors.IsNotFound(err) {
		return f, err
	}
	var err error
	f.enabled, err = workload.Delivers(ctx, c.Client, key.Namespace)
	return f, err
}

// remove deletes a Secret that none needs any more, unless it has changed meanwhile.
func (c *Controller) remove(ctx context.Context, secret *corev1.Secret) (reconcile.Result, error) {
	key, now := client.ObjectKeyFromObject(secret), c.Clock.Now()
	unneeded := c.Ledger.Change(key, func(e *Entry) {
		if e.unneeded.IsZero() {
			*e = Entry{unneeded: now}
		}
	}).unneeded
	if wait := settling - now.Sub(unneeded); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c.Ledger.Forget(key)
	err := c.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: cacheLag}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("delete Secret %s, which no context object needs any more: %w", key, err)
	}
	c.Log.InfoContext(ctx, "a Secret that no context object needs any more was deleted", "secret", key.String())
	return reconcile.Result{}, nil
}

// taken handles a Secret that exists though the cache does not show it: another one, or the cache is behind.
func (c *Controller) taken(ctx context.Context, key types.NamespacedName, d *identityv1alpha1.ContextDelivery) (reconcile.Result, error) {
	var found corev1.Secret
	if err := c.Live.Get(ctx, key, &found); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read Secret %s: %w", key, err)
	} else if err != nil || Marked(&found) {
		return reconcile.Result{RequeueAfter: cacheLag}, nil
	}
	if ofData(d) {
		c.Ledger.Forget(key) // other software may deliver static credentials
	} else {
		c.report(key, action{state: NotOwn, message: notOwn(key), delivery: d})
	}
	return reconcile.Result{RequeueAfter: foreignLook}, nil
}

// report writes why nothing is delivered as Events on the Secret, whether or not it exists, if it is known, and on the context object: when that
// changes, and again from time to time.
func (c *Controller) report(key types.NamespacedName, a action) {
	first := false
	c.Ledger.Change(key, func(e *Entry) {
		e.State, e.unneeded = a.state, time.Time{}
		first = e.Report(failures.Failure{Reason: reasons[a.state], Message: a.message}, c.Clock.Now())
	})
	if !first {
		return
	}
	object := a.delivery.Spec.ContextObject
	c.Log.Warn("a Secret of a context object is not as it should be", "secret", key.String(), "object", object.Kind+" "+object.Namespace+"/"+object.Name, "state", a.state, "message", a.message)
	if key.Namespace != "" {
		c.Events.Workload.Event(workload.Reference("v1", "Secret", key.Namespace, key.Name, ""), corev1.EventTypeWarning, reasons[a.state], a.message)
	}
	if object.Namespace != "" {
		c.Events.Identity.Event(workload.Reference(object.APIVersion, object.Kind, object.Namespace, object.Name, string(object.UID)), corev1.EventTypeWarning, reasons[a.state], a.message)
	}
}

// Grant is whether a Secret whose context is an object of the identity cluster may have a token, or the data of a binding.
type Grant struct {
	// Wait reports whether this is not known yet, or the Secret is about to be changed or removed.
	Wait bool
	// Denied is why it gets none; empty: it may.
	Denied string
	// Binding is the CredentialsBinding by which the token is requested; empty: none.
	Binding types.NamespacedName
}

// Grant looks at the deliveries into a Secret, as others may have written the Secret.
func (c *Controller) Grant(ctx context.Context, secret *corev1.Secret) (Grant, error) {
	key := client.ObjectKeyFromObject(secret)
	name := mark(secret)
	if name == "" {
		return Grant{Denied: fmt.Sprintf("its annotation %s names an object of the identity cluster, and the agent has not made it: take the annotation off", v1alpha1.AnnotationContextObject)}, nil
	}
	if !c.Deliveries.Known() {
		return Grant{Wait: true}, nil
	}
	enabled, err := workload.Delivers(ctx, c.Client, key.Namespace)
	if err != nil {
		return Grant{}, err
	}
	if !enabled {
		return Grant{Denied: fmt.Sprintf("the namespace %s has no label %s=%s any more", key.Namespace, v1alpha1.LabelNamespaceContexts, v1alpha1.NamespaceEnabled)}, nil
	}
	for _, d := range c.Deliveries.Of(key) {
		if d.Name != name || contextOf(d) != secret.Annotations[v1alpha1.AnnotationContextObject] {
			continue
		}
		grant := Grant{}
		if binding := d.Spec.CredentialsBinding; binding != nil {
			grant.Binding = types.NamespacedName{Namespace: binding.Namespace, Name: binding.Name}
		}
		named := types.NamespacedName{Namespace: secret.Annotations[v1alpha1.AnnotationNamespace], Name: secret.Annotations[v1alpha1.AnnotationName]}
		binding, bound := secret.Annotations[v1alpha1.AnnotationBinding]
		if bound {
			named.Name = binding
		}
		if d.Spec.WorkloadIdentity == nil && !ofData(d) || d.Spec.Problem != "" && bound {
			return grant, nil // a problem: the identity cluster decides whether the object still uses what the Secret names
		}
		grant.Wait = bound != ofData(d) || named != sourceOf(d)
		return grant, nil
	}
	// Static credentials do not expire: the identity cluster decides about those that are there also while the place of the object's is not known.
	_, copied := tokensecret.CopiedInto(secret)
	return Grant{Wait: !copied || !c.Deliveries.Unplaced(ObjectOf(secret))}, nil
}
