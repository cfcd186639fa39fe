// Package accounts keeps the Secrets of service accounts. In go service accounts with the identities that they name; out come Secrets to be
// filled, one for each identity, which go when nothing needs them any more. It requests no tokens.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Identities finds identities of the identity cluster. Its errors are those of the API.
type Identities interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
}

// Ledger remembers the failures of service accounts.
type Ledger = failures.Ledger[failures.Record]

// Needs are what a Controller works with.
type Needs struct {
	Client     client.Client
	Live       client.Reader
	Identities Identities
	Reviews    authority.Reviewer
	Clock      clock.PassiveClock
	Random     func() float64
	Events     workload.Events
	Renewals   *Renewals
	// Queue makes the agent look at a Secret.
	Queue func(types.NamespacedName, time.Duration)
	// Serves reports whether the agent has the Secrets of a namespace.
	Serves   func(namespace string) bool
	Failures *Ledger
	// Pods lists the pods of a service account that have not ended.
	Pods func(ctx context.Context, account types.NamespacedName) ([]corev1.Pod, error)
	// Delivery is how tokens come to pods of namespaces that do not choose; empty: in Secrets.
	Delivery string
	// Reports takes Secrets that could not be made, for the status of identities; nil: none.
	Reports *reports.Reporter
	Log     *slog.Logger
}

// Controller keeps one Secret for each identity that a service account gives its pods, and besides only those that pods still mount.
type Controller struct {
	Needs

	released sync.Map // of released, by service account
	missing  sync.Map // of map[string]struct{}, the identities whose missing Secret was reported, by service account
}

// New returns a Controller.
func New(needs Needs) *Controller { return &Controller{Needs: needs} }

// Reconcile handles one service account. It returns no errors of the API: its own waits cover them.
func (a *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	account := workload.NewAccount()
	if err := a.Client.Get(ctx, request.NamespacedName, account); err != nil {
		if client.IgnoreNotFound(err) == nil {
			a.Failures.Forget(request.NamespacedName)
			a.Renewals.end(request.NamespacedName)
			a.released.Delete(request.NamespacedName)
			a.withdraw(request.NamespacedName, nil, nil)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if account.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	kept, err := a.secrets(ctx, account)
	if err != nil {
		return reconcile.Result{}, err
	}
	on, err := workload.Enabled(ctx, a.Client, account.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	pods := sync.OnceValues(func() ([]corev1.Pod, error) { return a.Pods(ctx, request.NamespacedName) })
	var listed, wanted []string
	if on {
		listed, err = workload.Identities(ctx, a.Client, account)
		if err != nil && !errors.Is(err, workload.ErrList) {
			return reconcile.Result{}, err
		}
		if err != nil {
			a.warn(account, problem{"InvalidAnnotation", strings.TrimPrefix(err.Error(), workload.ErrList.Error()+": ")})
			// The Secrets stay: an annotation that cannot be read is not an order to delete. The account is read again, because no event comes when the annotation goes.
			return reconcile.Result{RequeueAfter: failures.Again}, nil
		}
		stores, err := workload.Stores(ctx, a.Client, account.Namespace, a.Delivery)
		if err != nil {
			return reconcile.Result{}, err
		}
		if wanted = listed; !stores {
			if wanted, err = missed(account.Name, listed, kept, pods); err != nil {
				return reconcile.Result{RequeueAfter: a.report(account, []problem{unreadable(err)})}, nil
			}
		}
	}
	if len(wanted) > 0 && !a.Serves(account.Namespace) {
		return reconcile.Result{RequeueAfter: a.unserved(account)}, nil
	}
	a.withdraw(request.NamespacedName, wanted, kept)
	problems := a.create(ctx, account, wanted, kept)
	unrestored, lost := a.restore(ctx, account, on, wanted, kept, pods)
	unreleased, stay := a.release(ctx, account, listed, wanted, kept, pods)
	problems = slices.Compact(slices.Concat(problems, unrestored, unreleased))
	maps.Copy(stay, lost)
	a.remember(account, stay)
	if err := a.renewAll(ctx, account, kept, wanted); err != nil {
		problems = append(problems, problem{"RenewalNotFinished", err.Error()})
	}
	after := a.report(account, problems)
	if after == 0 && len(stay) > 0 {
		after = ReleasedLook
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// missed are those of the identities of an account whose Secret is not there, although pods mount it. Where pods have volumes without Secrets
// these alone are made: the pods were admitted when that was different.
func missed(account string, listed []string, kept map[string]*corev1.Secret, pods func() ([]corev1.Pod, error)) ([]string, error) {
	missing := slices.DeleteFunc(slices.Clone(listed), func(identity string) bool { return kept[identity] != nil })
	if len(missing) == 0 {
		return nil, nil
	}
	all, err := pods()
	return slices.DeleteFunc(missing, func(identity string) bool { return len(usersOf(tokensecret.NameFor(account, identity), all)) == 0 }), err
}

// problem is why a service account does not have all Secrets that it should.
type problem struct{ reason, message string }

func (a *Controller) report(account *metav1.PartialObjectMetadata, problems []problem) time.Duration {
	key := client.ObjectKeyFromObject(account)
	if len(problems) == 0 {
		a.Failures.Forget(key)
		return 0
	}
	a.warn(account, problems...)
	var longest time.Duration
	for _, p := range problems {
		longest = max(longest, failures.LongestWait(p.message))
	}
	return a.failed(account, longest)
}

// failed counts a failure, and returns how long to wait: at most longest, if that is not 0.
func (a *Controller) failed(account *metav1.PartialObjectMetadata, longest time.Duration) (wait time.Duration) {
	a.Failures.Change(client.ObjectKeyFromObject(account), func(r *failures.Record) {
		wait = r.Failed(account.ResourceVersion, a.Clock.Now(), longest, a.Random)
	})
	return wait
}

// Patience is how many times in a row the agent lacks the right to the Secrets of a namespace before it writes an Event: the
// binder takes a moment to grant it, and the agent is notified then.
const Patience = 4

// unserved handles an account in a namespace whose Secrets the agent may not read.
func (a *Controller) unserved(account *metav1.PartialObjectMetadata) time.Duration {
	wait := a.failed(account, 0)
	if a.Failures.Get(client.ObjectKeyFromObject(account)).Failures >= Patience {
		a.warn(account, problem{"NamespaceNotBound", fmt.Sprintf("the agent may not read Secrets of the namespace %s: there must be a RoleBinding %s in it, "+
			"which credence-server binder creates; an admin of the cluster can see whether that runs", account.Namespace, rights.AgentSecrets)})
	}
	return wait
}

// warn writes an Event for each problem, unless an account's last ones were the same a short while ago.
func (a *Controller) warn(account *metav1.PartialObjectMetadata, problems ...problem) {
	var all []string
	for _, p := range problems {
		all = append(all, p.reason+": "+p.message)
	}
	f := failures.Failure{Message: strings.Join(all, "\n")}
	first := false
	a.Failures.Change(client.ObjectKeyFromObject(account), func(r *failures.Record) { first = r.Report(f, a.Clock.Now()) })
	if !first {
		return
	}
	for _, p := range problems {
		a.Events.Workload.Event(workload.Reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, p.reason, p.message)
	}
}

// renewAll carries out the annotation of an account that requests new tokens in all its Secrets, and then removes it.
func (a *Controller) renewAll(ctx context.Context, account *metav1.PartialObjectMetadata, kept map[string]*corev1.Secret, wanted []string) error {
	key := client.ObjectKeyFromObject(account)
	if account.Annotations[v1alpha1.AnnotationOperation] != v1alpha1.OperationRenewToken {
		a.Renewals.end(key)
		return nil
	}
	var secrets []types.NamespacedName
	names := slices.AppendSeq(slices.Clone(wanted), maps.Keys(kept)) // the token of one that stays for pods may be the one that has leaked
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		secrets = append(secrets, types.NamespacedName{Namespace: account.Namespace, Name: tokensecret.NameFor(account.Name, name)})
	}
	a.Renewals.keep(key, secrets)
	open, complete := a.Renewals.state(key)
	if !open {
		if missing := missingOf(wanted, kept); missing != "" {
			return fmt.Errorf("a new token is requested, but there is no Secret yet for %s", missing)
		}
		a.Renewals.begin(key, secrets)
		for _, secret := range secrets {
			a.Queue(secret, 0)
		}
		_, complete = a.Renewals.state(key)
	}
	if !complete {
		return nil // the last Secret that is done queues it
	}
	out := account.DeepCopy()
	delete(out.Annotations, v1alpha1.AnnotationOperation)
	if err := a.Client.Patch(ctx, out, client.MergeFromWithOptions(account, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove the annotation %s: %w", v1alpha1.AnnotationOperation, err)
	}
	a.Renewals.end(key)
	return nil
}

func missingOf(wanted []string, kept map[string]*corev1.Secret) string {
	var missing []string
	for _, name := range wanted {
		if kept[name] == nil {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}
